import type { Wish } from '../../../core/selection.ts'
import { refusal } from '../../errors.ts'

/**
 * How large the plans of an operation become: fragments that are spread many times make a statement out of a short
 * document that is longer than it by far, and lists of none cost nothing. Refused as soon as it is too much.
 */
export class PlanSize {
  readonly #most: number
  #text = 0
  #lists = 0
  #visits = 0

  constructor(most: number = planBounds.text) {
    this.#most = most
  }

  /** About how many characters the statements have, never fewer than they do. */
  get text(): number {
    return this.#text
  }

  addWish(kind: Wish['kind'], key: string): void {
    this.#text += key.length + textOf[kind]
    if (kind === 'many') this.#lists++
    if (this.#text > this.#most || this.#lists > planBounds.lists) throw tooLarge()
  }

  /** Looks at so many fields and spreads, wanted or not. */
  addVisits(count: number): void {
    this.#visits += count
    if (this.#visits > planBounds.visits) throw tooLarge()
  }
}

export const planBounds = Object.freeze({
  /** A thousand scalars of the longest names fit. */
  text: 256 * 1024,
  /**
   * Each list is a query of its own for the database, which takes most of a millisecond to plan, however few items are
   * asked for. A document without fragments has no room for so many.
   */
  lists: 200,
  /** Plans of subscriptions are kept for as long as these last, and thousands may last at a time. */
  subscriptionText: 64 * 1024,
  visits: 50_000,
})

/** What a wish adds to a statement beside its key, in the wordier of the two dialects. */
const textOf: Readonly<Record<Wish['kind'], number>> = {
  value: 100,
  text: 100,
  json: 100,
  empty: 100,
  one: 220,
  many: 700,
}

function tooLarge() {
  return refusal('DOCUMENT_TOO_LARGE', 'The operation is too large once its fragments are put in their places.')
}
