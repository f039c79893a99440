import type { Posts } from '../core/posts/operations.ts'
import type { Answer } from '../core/selection.ts'
import type { PreparedOperation } from './language/documents.ts'
import { introspect } from './language/introspection.ts'
import { collect, Planner, type Request, valuesOf } from './language/plan.ts'
import type { PlanSize } from './language/plans.ts'
import type { Variables } from './language/tree.ts'

export type QueryPlan = ReturnType<typeof planQuery>

export function planQuery(operation: PreparedOperation, variables: Variables, size: PlanSize) {
  const planner = new Planner(variables, size)
  const fields = [...collect([operation.tree], variables)].map(([key, fields]) => {
    if (fields[0].kind !== 'introspection') return planner.atTop(key, fields)
    size.add()
    return { kind: 'json', key, slot: planner.slot(request => introspect(fields, request)) } as const
  })
  /** A query for `__typename` or introspection alone does not read from the store. */
  const reads = fields.some(({ kind }) => kind === 'one' || kind === 'many')
  return { selection: { fields }, slots: planner.slots, reads }
}

export function runQuery(plan: QueryPlan, request: Request, posts: Posts): string | Promise<Answer> {
  const values = valuesOf(plan, request)
  if (plan.reads) return posts.read(request.actor, plan.selection, values)
  const entries = plan.selection.fields.map(field => {
    const value = field.kind === 'json' ? values[field.slot] : field.kind === 'text' ? JSON.stringify(field.text) : '[]'
    return `${JSON.stringify(field.key)}:${value}`
  })
  return `{${entries.join(',')}}`
}
