import { refusal } from '../errors.ts'
import type { Documents, ValidDocument } from '../language/documents.ts'
import type { OperationRequest } from '../operation-request.ts'
import { SharedTexts } from './shared-texts.ts'
import { checkHash, type DocumentSource, hashIn } from './source.ts'

/** Passes texts on to other threads, and receives theirs. */
export interface TextExchange {
  tell(hash: string, text: string, client: string): void
  listen(listener: (hash: string, text: string, client: string) => void): void
}

/**
 * Automatic persisted queries: a client that sends a valid document once together with its hash may later send only the
 * hash. Documents without a hash are prepared as they are.
 */
export class AutomaticDocuments implements DocumentSource {
  readonly #documents: Documents
  readonly #texts = new SharedTexts(persistedBounds)

  readonly #exchange: TextExchange | undefined

  constructor(documents: Documents, exchange?: TextExchange) {
    this.#documents = documents
    this.#exchange = exchange
    exchange?.listen((hash, text, client) => this.#texts.set(hash, text, client))
  }

  prepare(request: OperationRequest, client: string): ValidDocument {
    const { query } = request
    const hash = hashIn(request)
    if (query === undefined) return this.#documents.prepare(this.#textOf(hash))
    if (hash === undefined || this.#texts.get(hash) === query) return this.#documents.prepare(query)
    checkHash(query, hash)
    const document = this.#documents.prepare(query)
    this.#texts.set(hash, query, client)
    this.#exchange?.tell(hash, query, client)
    return document
  }

  #textOf(hash: string | undefined): string {
    if (hash === undefined) throw refusal('BAD_REQUEST', 'query must be a string.')
    const text = this.#texts.get(hash)
    if (text === undefined) throw refusal('PERSISTED_QUERY_NOT_FOUND', 'PersistedQueryNotFound')
    return text
  }
}

/** Bytes of memory for the texts of all clients, and for those that one client has sent. */
export const persistedBounds = Object.freeze({ bytes: 16 * 1024 * 1024, bytesPerClient: 2 * 1024 * 1024 })
