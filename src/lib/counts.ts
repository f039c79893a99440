/** How often each key is in use. A key that is not in use takes no memory. */
export class Counts {
  readonly #counts = new Map<string, number>()

  get size(): number {
    return this.#counts.size
  }

  of(key: string): number {
    return this.#counts.get(key) ?? 0
  }

  /** Counts one more use, or one less. Returns how many there are now. */
  add(key: string, more: 1 | -1 = 1): number {
    const count = this.of(key) + more
    if (count > 0) this.#counts.set(key, count)
    else this.#counts.delete(key)
    return count
  }
}
