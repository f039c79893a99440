import type { GraphQLSchema } from 'graphql'
import type { Actor } from '../core/actor.ts'
import { AppError } from '../core/errors.ts'
import type { Topic } from '../core/events.ts'
import type { Fields } from '../core/input.ts'
import type { Posts } from '../core/posts/operations.ts'
import type { Answer } from '../core/selection.ts'
import { refusal, refusalFromCore } from './errors.ts'
import type { PreparedOperation } from './language/documents.ts'
import { checkCost } from './language/limits/cost.ts'
import { collect, idIn, planShown, type Request, showOf } from './language/plan.ts'
import { keptPlans, PlanSize, planBounds } from './language/plans.ts'
import type { Subscription } from './live/groups.ts'
import { type MutationPlan, planMutation, runMutation } from './mutation.ts'
import type { AutomaticDocuments } from './persisted/automatic.ts'
import { planQuery, type QueryPlan, runQuery } from './query.ts'
import type { OperationRequest } from './request.ts'

export interface ExecutorParts {
  readonly schema: GraphQLSchema
  readonly documents: Pick<AutomaticDocuments, 'prepare'>
  readonly posts: Posts
  readonly maxComplexity: number
}

/**
 * Runs every operation, from its text to the JSON of its `data`: document, variables, cost, plan, access check, then
 * the store. Any problem is thrown as a refusal; then nothing has taken effect.
 */
export class Executor {
  readonly #parts: ExecutorParts
  readonly #queries = keptPlans<QueryPlan>(planQuery)
  readonly #mutations = keptPlans<MutationPlan>(planMutation)

  constructor(parts: ExecutorParts) {
    this.#parts = parts
  }

  prepare(request: OperationRequest): PreparedOperation {
    return this.#parts.documents.prepare(request).operation(request.operationName)
  }

  async execute(operation: PreparedOperation, inputs: Fields, actor: Actor): Promise<Answer> {
    try {
      const request = this.#request(operation, inputs, actor)
      return operation.kind === 'mutation'
        ? await runMutation(this.#mutations(operation, request.variables), request, this.#parts.posts)
        : await runQuery(this.#queries(operation, request.variables), request, this.#parts.posts)
    } catch (error) {
      throw error instanceof AppError ? refusalFromCore(error) : error
    }
  }

  /** Plans a subscription and checks that the actor may have it. Errors of the core are thrown as they are. */
  subscription(operation: PreparedOperation, inputs: Fields, actor: Actor): Subscription {
    const subscription = planSubscription(operation, this.#request(operation, inputs, actor))
    this.#parts.posts.authorise(actor, subscription.selection, subscription.values)
    return subscription
  }

  /** Coerces the variables to the types of the schema. Throws if the operation costs too much with them. */
  #request(operation: PreparedOperation, inputs: Fields, actor: Actor): Request {
    const variables = operation.coerce(inputs)
    const { schema, maxComplexity } = this.#parts
    checkCost(operation.cost(variables), maxComplexity)
    return { schema, variables, actor, introspected: { fields: 0 } }
  }
}

function planSubscription({ tree }: PreparedOperation, request: Request): Subscription {
  const { variables } = request
  const [merged] = collect([tree], variables)
  if (merged === undefined) throw refusal('BAD_REQUEST', 'The subscription selects nothing.')
  const [key, fields] = merged
  const [{ name, args }] = fields
  const kind = subscriptions[name]
  if (kind === undefined) throw new Error(`src/graphql/execute.ts has no ${name}`)
  const root = kind.startsWith('post') ? 'post' : 'comment'
  // An id that is not valid becomes 0, which no post has.
  const postId = root === 'post' ? undefined : (idIn(args.get('postId'), variables) ?? 0)
  const plan = planShown(root, key, fields, variables, new PlanSize(planBounds.subscriptionFields))
  return { key, topic: { kind, postId } as Topic, ...showOf(plan, request) }
}

export const subscriptions: Readonly<Record<string, Topic['kind']>> = {
  postAdded: 'post-added',
  postUpdated: 'post-updated',
  postDeleted: 'post-deleted',
  commentAdded: 'comment-added',
  commentUpdated: 'comment-updated',
  commentDeleted: 'comment-deleted',
}
