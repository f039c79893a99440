import { refusal } from '../../errors.ts'

/**
 * Counts the fields of an operation's plans and refuses it as soon as they are too many. The cost limit is not enough:
 * lists with limit 0 are free, and with shared fragments a short document has thousands of them.
 */
export class PlanSize {
  readonly #most: number
  #fields = 0
  #lists = 0

  constructor(most: number = planBounds.fields) {
    this.#most = most
  }

  /** The approximate memory in bytes of the plan and its statement. */
  get weight(): number {
    return 1_600 * this.#fields + 3_000 * this.#lists
  }

  add(isList = false): void {
    this.#fields++
    if (isList) this.#lists++
    if (this.#fields <= this.#most && this.#lists <= planBounds.lists) return
    throw refusal('DOCUMENT_TOO_LARGE', 'The operation is too large once its fragments are put in their places.')
  }
}

export const planBounds = Object.freeze({
  fields: 1_500,
  /** Each list is a subquery that takes the database almost a millisecond to plan, even with a small limit. */
  lists: 200,
  /** Fewer: a subscription's plan is kept as long as the subscription, and there may be thousands. */
  subscriptionFields: 500,
})
