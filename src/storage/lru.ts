/** A map that keeps the most recently used entries, at most `size` of them. */
export class Lru<Key, Entry> {
  readonly #entries = new Map<Key, Entry>()
  readonly #size: number
  readonly #dropped: (entry: Entry) => void

  constructor(size: number, dropped: (entry: Entry) => void = () => {}) {
    this.#size = size
    this.#dropped = dropped
  }

  get(key: Key): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry
  }

  set(key: Key, entry: Entry): void {
    this.#entries.set(key, entry)
    if (this.#entries.size <= this.#size) return
    for (const [oldestKey, oldest] of this.#entries) {
      this.#entries.delete(oldestKey)
      this.#dropped(oldest)
      return
    }
  }

  clear(): void {
    this.#entries.clear()
  }
}
