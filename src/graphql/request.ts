import { type Fields, isObject } from '../core/input.ts'
import { refusal } from './errors.ts'

/** A request for an operation, independent of the transport. */
export interface OperationRequest {
  /** The text of the document. Missing if the request only names the document. */
  readonly query: string | undefined
  readonly documentId?: string | undefined
  readonly extensions?: Fields
  readonly operationName: string | undefined
  readonly variables: Fields
}

/** Reads the requested operation from a body, a query string or a socket message. */
export function operationIn(body: unknown): OperationRequest {
  if (!isObject(body)) throw refusal('BAD_REQUEST', 'The request must be a JSON object with a query.')
  const { query, operationName, variables, extensions } = body
  // As clients of different kinds name a document that the service knows.
  const documentId = [body.documentId, body.doc_id, body.id].find(isText)
  const isNamed = documentId !== undefined || (isObject(extensions) && !isAbsent(extensions.persistedQuery))
  // Some clients must send a text, and send an empty one.
  const text = isNamed && (isAbsent(query) || query === '') ? undefined : query
  if (typeof text !== 'string' && (text !== undefined || !isNamed)) {
    throw refusal('BAD_REQUEST', 'query must be a string.')
  }
  if (!isAbsent(operationName) && typeof operationName !== 'string') {
    throw refusal('BAD_REQUEST', 'operationName must be a string.')
  }
  if (!isAbsent(extensions) && !isObject(extensions)) throw refusal('BAD_REQUEST', 'extensions must be an object.')
  if (!isAbsent(variables) && !isObject(variables)) throw refusal('BAD_REQUEST', 'variables must be an object.')
  return {
    query: text,
    documentId,
    extensions: isObject(extensions) ? extensions : {},
    operationName: operationName || undefined,
    variables: isObject(variables) ? variables : {},
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null
}
