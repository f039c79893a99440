import { Recent } from '../../core/recent.ts'
import type { PreparedOperation } from './documents.ts'
import { PlanSize } from './limits/plan-size.ts'
import { shapeKey } from './plan.ts'
import type { Variables } from './tree.ts'

export type MakePlan<Plan> = (operation: PreparedOperation, variables: Variables, size: PlanSize) => Plan

/** Plans of operations, made once for all requests of one shape and kept while they are used. */
export class Plans<Plan> {
  readonly #make: MakePlan<Plan>
  readonly #known = new Recent<string, Kept<Plan>>(kept.plans, {
    weights: { of: ({ weight }) => weight, most: kept.bytes },
  })

  constructor(make: MakePlan<Plan>) {
    this.#make = make
  }

  get(operation: PreparedOperation, variables: Variables): Plan {
    const key = operation.id + shapeKey(variables)
    const known = this.#known.get(key)
    if (known !== undefined) return known.plan
    const size = new PlanSize()
    const plan = this.#make(operation, variables, size)
    // A plan holds on to the document that it is made of, though that may be forgotten elsewhere.
    this.#known.set(key, { plan, weight: operation.weight + size.text * bytesPerCharacter + 2 * key.length })
    return plan
  }
}

interface Kept<Plan> {
  readonly plan: Plan
  readonly weight: number
}

/** Beyond that, what was not used lately is forgotten. */
const kept = Object.freeze({ plans: 2000, bytes: 32 * 1024 * 1024 })

/** Of the statements that a plan becomes, with a guard for large answers and without, and of the plan itself. */
const bytesPerCharacter = 3
