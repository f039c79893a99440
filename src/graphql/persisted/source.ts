import { hash } from 'node:crypto'
import { isObject } from '../../server/fields.ts'
import { refusal } from '../errors.ts'
import type { ValidDocument } from '../language/documents.ts'
import type { OperationRequest } from '../operation-request.ts'

/** Finds the document of a request, which may contain its text or only its name. */
export interface DocumentSource {
  /** `client` is the key of the client that sent the request. Throws a refusal if there is no such valid document. */
  prepare(request: OperationRequest, client: string): ValidDocument
}

/** The hash in `extensions.persistedQuery`, as Apollo's protocol defines it. */
export function hashIn({ extensions }: OperationRequest): string | undefined {
  const given = extensions?.persistedQuery ?? undefined
  if (given === undefined) return undefined
  if (!isObject(given)) throw refusal('BAD_REQUEST', 'extensions.persistedQuery must be an object.')
  const { version, sha256Hash } = given
  if (version !== 1) throw refusal('BAD_REQUEST', 'extensions.persistedQuery.version must be 1.')
  if (typeof sha256Hash === 'string' && sha256Hash !== '') return sha256Hash
  throw refusal('BAD_REQUEST', 'extensions.persistedQuery.sha256Hash must be a string.')
}

/** Throws a refusal if a text has another hash. The size of a request limits the work of hashing. */
export function checkHash(text: string, given: string): void {
  if (hash('sha256', text) === given) return
  throw refusal('BAD_REQUEST', 'extensions.persistedQuery.sha256Hash is not the hash of the query.')
}
