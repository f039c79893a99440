import { refusal } from './errors.ts'
import type { PreparedOperation } from './language/documents.ts'
import { collect, idIn, planShown, type Request, showOf } from './language/plan.ts'
import { PlanSize, planBounds } from './language/plans.ts'
import type { Subscription } from './live/groups.ts'

export function planSubscription({ tree }: PreparedOperation, request: Request): Subscription {
  const { variables } = request
  const [merged] = collect([tree], variables)
  if (merged === undefined) throw refusal('BAD_REQUEST', 'The subscription selects nothing.')
  const [key, fields] = merged
  const [{ name, args }] = fields
  const root = name === 'postAdded' ? 'post' : 'comment'
  // An id that is not valid becomes 0, which no post has.
  const topic =
    root === 'post'
      ? { kind: 'posts' as const }
      : { kind: 'comments' as const, postId: idIn(args.get('postId'), variables) ?? 0 }
  const plan = planShown(root, key, fields, variables, new PlanSize(planBounds.subscriptionFields))
  return { key, topic, ...showOf(plan, request) }
}
