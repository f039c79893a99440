import { LruCache } from '../../lib/lru-cache.ts'
import { waited } from '../../lib/waits.ts'
import { refusal } from '../errors.ts'
import type { PreparedOperation } from './documents.ts'
import type { Variables } from './tree.ts'

/** An LRU cache of the plans of kept documents. A plan is made once for all requests of the same shape. */
export function keptPlans<Plan>(make: (operation: PreparedOperation, variables: Variables, size: PlanSize) => Plan) {
  const known = new LruCache<string, { readonly plan: Plan; readonly weight: number }>(kept.plans, {
    of: ({ weight }) => weight,
    most: kept.bytes,
  })
  return (operation: PreparedOperation, variables: Variables): Plan => {
    const key = operation.id + shapeKey(operation.variableNames, variables)
    const found = known.get(key)
    if (found !== undefined) return found.plan
    const begun = performance.now()
    const size = new PlanSize()
    const plan = make(operation, variables, size)
    waited('plan', begun)
    const { isKept, weight } = operation.document
    // The weight includes the document, because the plan keeps it in memory even if the cache of documents drops it.
    if (isKept) known.set(key, { plan, weight: weight + size.weight + 2 * key.length })
    return plan
  }
}

const kept = Object.freeze({ plans: 2000, bytes: 32 * 1024 * 1024 })

/**
 * A key of everything in an operation's variables that changes the shape of a plan: whether conditions are true, whether
 * arguments are given, and whether a limit is 0. Requests with the same key share a plan; only the values of its slots
 * differ.
 */
function shapeKey(names: readonly string[], variables: Variables): string {
  let key = ''
  for (const name of names) {
    const value = variables[name]
    if (value === undefined) key += '-'
    else if (value === null) key += 'n'
    else if (value === 0) key += '0'
    else if (value === true) key += 't'
    else key += value === false ? 'f' : 's'
  }
  return key
}

/**
 * Counts the fields of an operation's plans and refuses it as soon as they are too many. The cost limit is not enough:
 * lists with limit 0 are free, and with fragments a short document has thousands of them.
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
