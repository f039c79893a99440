/** For entries of different sizes: `of` returns the weight of an entry, `most` is the maximum total weight. */
export interface Weights<Entry> {
  readonly of: (entry: Entry) => number
  readonly most: number
}

/**
 * An approximate LRU cache of at most `size` entries. It has a young and an old generation. A lookup that hits the
 * young one, the usual case, changes nothing; a hit in the old one moves the entry to the young one. When the young
 * generation is full it becomes the old one, and the entries left in the previous old one are dropped.
 */
export class LruCache<Key, Entry> {
  readonly #half: number
  readonly #weights: Weights<Entry> | undefined
  #weight = 0
  #young = new Map<Key, Entry>()
  #old = new Map<Key, Entry>()

  constructor(size: number, weights?: Weights<Entry>) {
    this.#half = Math.max(1, size >> 1)
    this.#weights = weights
  }

  get(key: Key): Entry | undefined {
    const entry = this.#young.get(key)
    if (entry !== undefined) return entry
    const kept = this.#old.get(key)
    if (kept === undefined) return undefined
    this.#old.delete(key)
    this.set(key, kept)
    return kept
  }

  set(key: Key, entry: Entry): void {
    const weights = this.#weights
    const weight = weights?.of(entry) ?? 0
    if (this.#young.size >= this.#half || (weights && this.#weight + weight > weights.most / 2)) {
      this.#old = this.#young
      this.#young = new Map()
      this.#weight = 0
    }
    this.#young.set(key, entry)
    this.#weight += weight
  }
}
