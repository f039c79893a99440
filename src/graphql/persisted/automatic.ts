import { hash as hashOf } from 'node:crypto'
import { isObject } from '../../core/input.ts'
import { LruCache } from '../../lib/lru-cache.ts'
import { refusal } from '../errors.ts'
import type { Documents, ValidDocument } from '../language/documents.ts'
import type { OperationRequest } from '../request.ts'

/**
 * Automatic persisted queries: a client that sends a valid document once together with its hash may later send only the
 * hash. Each thread learns for itself: a client that meets one that does not know the hash sends the text again.
 */
export class AutomaticDocuments {
  readonly #documents: Documents
  readonly #texts = new LruCache<string, string>(persistedBounds.texts, {
    of: ({ length }) => 2 * length,
    most: persistedBounds.bytes,
  })

  constructor(documents: Documents) {
    this.#documents = documents
  }

  /** Finds the document of a request, which may contain its text or only its name. Throws a refusal if there is none. */
  prepare(request: OperationRequest): ValidDocument {
    const { query } = request
    const hash = hashIn(request)
    if (query === undefined) return this.#documents.prepare(this.#textOf(hash))
    if (hash === undefined || this.#texts.get(hash) === query) return this.#documents.prepare(query)
    checkHash(query, hash)
    const document = this.#documents.prepare(query)
    this.#texts.set(hash, Buffer.from(query).toString()) // a copy: a part of the URL would keep all of it in memory
    return document
  }

  #textOf(hash: string | undefined): string {
    if (hash === undefined) throw refusal('BAD_REQUEST', 'query must be a string.')
    const text = this.#texts.get(hash)
    if (text === undefined) throw refusal('PERSISTED_QUERY_NOT_FOUND', 'PersistedQueryNotFound')
    return text
  }
}

export const persistedBounds = Object.freeze({ texts: 10_000, bytes: 16 * 1024 * 1024 })

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
  if (hashOf('sha256', text) === given) return
  throw refusal('BAD_REQUEST', 'extensions.persistedQuery.sha256Hash is not the hash of the query.')
}
