/**
 * A map that keeps what was used lately, at most `size` entries. It has two generations: a look-up in the young one, the
 * usual case, changes nothing; when that is full it becomes the old one, and what nobody asked for there is dropped.
 */
export class Recent<Key, Entry> {
  readonly #half: number
  readonly #dropped: (entry: Entry) => void
  #young = new Map<Key, Entry>()
  #old = new Map<Key, Entry>()

  constructor(size: number, dropped: (entry: Entry) => void = () => {}) {
    this.#half = Math.max(1, size >> 1)
    this.#dropped = dropped
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
    if (this.#young.size >= this.#half) {
      for (const dropped of this.#old.values()) this.#dropped(dropped)
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, entry)
  }

  clear(): void {
    this.#young.clear()
    this.#old.clear()
  }
}
