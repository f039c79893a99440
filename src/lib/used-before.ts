import { hash } from 'node:crypto'

/**
 * Tells which texts have been used before, and not long ago. Most ad-hoc queries of clients occur once. A cache that keeps
 * them from their second use on stays small: without this, a flood of different documents takes 40 MB more, because V8
 * puts what a cache keeps into the old space, and what the cache then drops stays there for long.
 */
export class UsedBefore {
  readonly #hashes = new Set<string>()

  /** Whether this is not the first use of the text. Remembers it. */
  again(text: string): boolean {
    const key = hash('sha1', text, 'base64url')
    if (this.#hashes.has(key)) return true
    if (this.#hashes.size >= remembered) this.#hashes.clear()
    this.#hashes.add(key)
    return false
  }
}

const remembered = 1_000
