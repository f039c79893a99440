import type { SelectedField } from '../../../core/selection.ts'
import { refusal } from '../../errors.ts'

/**
 * Measures the plans of an operation and refuses it as soon as they are too large. The cost limit is not enough:
 * fragments that are spread many times turn a short document into a long statement, and lists with limit 0 are free.
 */
export class PlanSize {
  readonly #most: number
  #text = 0
  #lists = 0
  #visits = 0

  constructor(most: number = planBounds.text) {
    this.#most = most
  }

  /** The approximate length of the statements in characters. Never less than the real length. */
  get text(): number {
    return this.#text
  }

  addField(kind: SelectedField['kind'], key: string): void {
    this.#text += key.length + textOf[kind]
    if (kind === 'many') this.#lists++
    if (this.#text > this.#most || this.#lists > planBounds.lists) throw tooLarge()
  }

  /** Counts visited fields and spreads, including skipped ones. */
  addVisits(count: number): void {
    this.#visits += count
    if (this.#visits > planBounds.visits) throw tooLarge()
  }
}

export const planBounds = Object.freeze({
  /** Enough for a thousand scalars with the longest names. */
  text: 256 * 1024,
  /**
   * Each list is a subquery that takes the database almost a millisecond to plan, even with a small limit. A document
   * without fragments is too short for so many lists.
   */
  lists: 200,
  /** Lower than `text`: a subscription's plan is kept as long as the subscription, and there may be thousands. */
  subscriptionText: 64 * 1024,
  visits: 50_000,
})

/** The characters that a selected field adds to a statement, in addition to its key, in the dialect that needs more. */
const textOf: Readonly<Record<SelectedField['kind'], number>> = {
  value: 130,
  text: 100,
  json: 100,
  empty: 100,
  one: 220,
  many: 700,
}

function tooLarge() {
  return refusal('DOCUMENT_TOO_LARGE', 'The operation is too large once its fragments are put in their places.')
}
