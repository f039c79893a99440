import { LruCache } from '../../lib/lru-cache.ts'
import type { PreparedOperation } from './documents.ts'
import { PlanSize } from './limits/plan-size.ts'
import { shapeKey } from './plan.ts'
import type { Variables } from './tree.ts'

export type MakePlan<Plan> = (operation: PreparedOperation, variables: Variables, size: PlanSize) => Plan

/** An LRU cache of plans. A plan is made once for all requests of the same shape. */
export class Plans<Plan> {
  readonly #make: MakePlan<Plan>
  readonly #known = new LruCache<string, { readonly plan: Plan; readonly weight: number }>(kept.plans, {
    of: ({ weight }) => weight,
    most: kept.bytes,
  })

  constructor(make: MakePlan<Plan>) {
    this.#make = make
  }

  get(operation: PreparedOperation, variables: Variables): Plan {
    const key = operation.id + shapeKey(operation.variableNames, variables)
    const known = this.#known.get(key)
    if (known !== undefined) return known.plan
    const size = new PlanSize()
    const plan = this.#make(operation, variables, size)
    // The weight includes the document, because the plan keeps it in memory even if the cache of documents drops it.
    this.#known.set(key, { plan, weight: operation.weight + size.weight + 2 * key.length })
    return plan
  }
}

/** Limits of the cache. Beyond them, the plans that were not used recently are dropped. */
const kept = Object.freeze({ plans: 2000, bytes: 32 * 1024 * 1024 })
