/**
 * A collection of short-lived items, each in a numbered slot that is used again. Not a Map or a Set: when V8 enlarges or
 * cleans the table of one, the old table keeps a reference to the new one. Once a full garbage collection has moved a
 * table to the old space, each later table survives all small collections, and with it the items that it had when it
 * was replaced. If requests come and go in a Map, about half of their memory becomes work for full collections.
 */
export class Slots<Item extends object> {
  readonly #items: (Item | undefined)[] = []
  readonly #free: number[] = []

  get size(): number {
    return this.#items.length - this.#free.length
  }

  /** Returns the slot of the item. */
  add(item: Item): number {
    const slot = this.#free.pop() ?? this.#items.length
    this.#items[slot] = item
    return slot
  }

  /** Removes and returns the item of a slot. */
  take(slot: number): Item | undefined {
    const item = this.#items[slot]
    if (item === undefined) return undefined
    this.#items[slot] = undefined
    this.#free.push(slot)
    return item
  }

  *[Symbol.iterator](): Generator<Item> {
    for (const item of this.#items) if (item !== undefined) yield item
  }
}
