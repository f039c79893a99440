import type { Fields } from '../server/fields.ts'

/** A request for an operation, independent of the transport. */
export interface OperationRequest {
  /** The text of the document. Missing if the request only names the document. */
  readonly query: string | undefined
  readonly documentId?: string | undefined
  readonly extensions?: Fields
  readonly operationName: string | undefined
  readonly variables: Fields
}
