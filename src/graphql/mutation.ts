import { AppError } from '../core/errors.ts'
import type { RequestedChange } from '../core/posts/change.ts'
import type { Posts } from '../core/posts/operations.ts'
import { refusalFromCore } from './errors.ts'
import type { PreparedOperation } from './language/documents.ts'
import { collect, idIn, type Merged, planShown, type Request, showOf } from './language/plan.ts'
import type { PlanSize } from './language/plans.ts'
import { argumentIn, type Variables } from './language/tree.ts'

/** The entries of the answer, in order. Each is its constant JSON or a change. */
export type MutationPlan = readonly (string | PlannedChange)[]
type PlannedChange = ReturnType<typeof planChange>

/** Plans all changes of an operation. They share one size limit. */
export function planMutation({ tree }: PreparedOperation, variables: Variables, size: PlanSize): MutationPlan {
  return [...collect([tree], variables)].map(([key, fields]) =>
    fields[0].kind === 'typename'
      ? `${JSON.stringify(key)}:${JSON.stringify(fields[0].type)}`
      : planChange(key, fields, variables, size),
  )
}

/** Makes all changes or none, and returns the JSON of the answer's data. */
export async function runMutation(plan: MutationPlan, request: Request, posts: Posts): Promise<string> {
  const planned = plan.filter(entry => typeof entry !== 'string')
  const results = await change(planned, request, posts)
  const entries = plan.map(entry => {
    if (typeof entry === 'string') return entry
    const result = results[planned.indexOf(entry)]
    // The result is a JSON object with only this key, so its braces are removed.
    return typeof result === 'string' ? result.slice(1, -1) : `${JSON.stringify(entry.key)}:${result}`
  })
  return `{${entries.join(',')}}`
}

async function change(planned: readonly PlannedChange[], request: Request, posts: Posts) {
  if (planned.length === 0) return []
  const asked = planned.map(({ change }) => change(request))
  try {
    return await posts.change(request.actor, asked)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    const failed = error.at === undefined ? undefined : planned[error.at]
    throw refusalFromCore(error, failed && [failed.key])
  }
}

function planChange(key: string, fields: Merged, variables: Variables, size: PlanSize) {
  const [{ name, args }] = fields
  const mutation = mutations[name]
  if (mutation === undefined) throw new Error(`src/graphql/mutation.ts has no ${name}`)
  const { kind, id, texts = [], shows } = mutation
  const plan = shows && planShown(shows, key, fields, variables, size)
  const change = (request: Request) => {
    const { variables } = request
    const asked: Record<string, unknown> = { kind }
    if (id !== undefined) asked[id] = idIn(args.get('id') ?? args.get('postId'), variables)
    for (const name of texts) asked[name] = argumentIn(args.get(name), variables) ?? null
    if (plan !== undefined) asked.show = showOf(plan, request)
    return asked as unknown as RequestedChange
  }
  return { key, change }
}

interface Mutation {
  readonly kind: RequestedChange['kind']
  /** What the change calls the id that is given. */
  readonly id?: 'id' | 'postId' | 'commentId'
  /** The other arguments. One that is not given is null in the change. */
  readonly texts?: readonly string[]
  readonly shows?: 'post' | 'comment'
}

export const mutations: Readonly<Record<string, Mutation>> = {
  createPost: { kind: 'create a post', texts: ['title', 'content'], shows: 'post' },
  updatePost: { kind: 'update a post', id: 'id', texts: ['title', 'content', 'ifUpdatedAt'], shows: 'post' },
  deletePost: { kind: 'delete a post', id: 'id' },
  likePost: { kind: 'like a post', id: 'id', shows: 'post' },
  addComment: { kind: 'add a comment', id: 'postId', texts: ['text'], shows: 'comment' },
  updateComment: { kind: 'update a comment', id: 'commentId', texts: ['text', 'ifUpdatedAt'], shows: 'comment' },
  deleteComment: { kind: 'delete a comment', id: 'commentId' },
}
