import { createHash } from 'node:crypto'
import { AppError } from '../../core/errors.ts'
import { Refusal, refusal } from '../errors.ts'
import type { Documents, PreparedOperation, ValidDocument } from '../language/documents.ts'
import { checkCost } from '../language/limits/cost.ts'
import type { Variables } from '../language/tree.ts'
import type { OperationRequest } from '../request.ts'
import { type AutomaticDocuments, checkHash, hashIn } from './automatic.ts'
import { ManifestError, shown, type TrustedDocument } from './manifest.ts'

/** Allows only the documents of a manifest, named by their id or their hash, or sent as their exact text. */
export class TrustedDocuments implements Pick<AutomaticDocuments, 'prepare'> {
  readonly #documents: Documents
  /** By the ids of the manifest and by the SHA-256 hash of the text, which some clients send instead. */
  readonly #textOf = new Map<string, string>()
  readonly #texts: ReadonlySet<string>

  /** Checks all documents, so that a client never meets one that cannot run. Throws a `ManifestError`. */
  constructor(documents: Documents, trusted: readonly TrustedDocument[], maxComplexity: number) {
    this.#documents = documents
    this.#texts = new Set(trusted.map(({ text }) => text))
    for (const { text } of trusted) this.#textOf.set(createHash('sha256').update(text).digest('hex'), text)
    // An id takes precedence over a hash.
    for (const { id, text } of trusted) this.#textOf.set(id, text)
    for (const document of trusted) this.#check(document, maxComplexity)
  }

  prepare(request: OperationRequest): ValidDocument {
    const { query, documentId } = request
    const hash = hashIn(request)
    if (query === undefined) return this.#documents.prepare(this.#named(documentId ?? hash ?? ''))
    // An id of the manifest may take the place of the hash.
    if (hash !== undefined && this.#textOf.get(hash) !== query) checkHash(query, hash)
    if (!this.#texts.has(query)) throw notTrusted()
    return this.#documents.prepare(query)
  }

  #named(id: string): string {
    // Clients that follow GraphQL over HTTP put the algorithm before the hash.
    const text = this.#textOf.get(id) ?? this.#textOf.get(id.replace(/^sha256:/, ''))
    if (text === undefined) throw notTrusted()
    return text
  }

  #check({ id, text }: TrustedDocument, maxComplexity: number): void {
    try {
      for (const operation of this.#documents.prepare(text).operations) {
        const variables = defaultsOf(operation)
        if (variables !== undefined) checkCost(operation.cost(variables), maxComplexity)
      }
    } catch (error) {
      if (!(error instanceof Refusal || error instanceof AppError)) throw error
      const names = [...text.matchAll(/\b(?:query|mutation|subscription)\s+(\w{1,70})/g)].map(([, name]) => name)
      throw new ManifestError(`${names.slice(0, 3).join(', ') || 'an operation'} (${shown(id)}): ${error.message}`)
    }
  }
}

/** The variables of a request that sends none. Undefined if the operation needs some: then its cost is not known yet. */
function defaultsOf(operation: PreparedOperation): Variables | undefined {
  try {
    return operation.coerce({})
  } catch {
    return undefined
  }
}

function notTrusted(): Refusal {
  return refusal('DOCUMENT_NOT_TRUSTED', 'This document is not one of those that may run here.')
}
