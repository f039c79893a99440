export interface RecentOptions<Entry> {
  readonly dropped?: (entry: Entry) => void
  /** Where entries differ in size: what each weighs, and how much all may weigh together. */
  readonly weights?: { readonly of: (entry: Entry) => number; readonly most: number }
}

/**
 * A map that keeps what was used lately, at most `size` entries. It has two generations: a look-up in the young one, the
 * usual case, changes nothing; when that is full it becomes the old one, and what nobody asked for there is dropped.
 */
export class Recent<Key, Entry> {
  readonly #half: number
  readonly #options: RecentOptions<Entry>
  #weight = 0
  #young = new Map<Key, Entry>()
  #old = new Map<Key, Entry>()

  constructor(size: number, options: RecentOptions<Entry> = {}) {
    this.#half = Math.max(1, size >> 1)
    this.#options = options
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
    const { dropped, weights } = this.#options
    const weight = weights?.of(entry) ?? 0
    if (this.#young.size >= this.#half || (weights && this.#weight + weight > weights.most / 2)) {
      if (dropped !== undefined) for (const each of this.#old.values()) dropped(each)
      this.#old = this.#young
      this.#young = new Map()
      this.#weight = 0
    }
    this.#young.set(key, entry)
    this.#weight += weight
  }

  clear(): void {
    this.#young.clear()
    this.#old.clear()
    this.#weight = 0
  }
}
