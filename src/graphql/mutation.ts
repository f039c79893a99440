import { AppError } from '../core/errors.ts'
import type { RequestedChange } from '../core/posts/change.ts'
import type { Posts } from '../core/posts/operations.ts'
import type { Show } from '../core/store.ts'
import { refusalFromCore } from './errors.ts'
import type { PreparedOperation } from './language/documents.ts'
import type { PlanSize } from './language/limits/plan-size.ts'
import { collect, idIn, type Merged, planShown, type Request, showOf } from './language/plan.ts'
import { argumentIn, type Variables } from './language/tree.ts'

/** The entries of the answer, in order. Each is a constant text or a change. */
export type MutationPlan = readonly (PlannedText | PlannedChange)[]

interface PlannedText {
  readonly key: string
  readonly text: string
}

interface PlannedChange {
  readonly key: string
  readonly change: (request: Request) => RequestedChange
}

/** Plans all changes of an operation. They share one size limit. */
export function planMutation({ tree }: PreparedOperation, variables: Variables, size: PlanSize): MutationPlan {
  return [...collect([tree], variables)].map(([key, fields]) =>
    fields[0].kind === 'typename' ? { key, text: fields[0].type } : planChange(key, fields, variables, size),
  )
}

/** Makes all changes or none, and returns the JSON of the answer's data. */
export async function runMutation(plan: MutationPlan, request: Request, posts: Posts): Promise<string> {
  const planned = plan.filter(entry => 'change' in entry)
  const results = await change(planned, request, posts)
  const entries = plan.map(entry => {
    if ('text' in entry) return `${JSON.stringify(entry.key)}:${JSON.stringify(entry.text)}`
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

function planChange(key: string, fields: Merged, variables: Variables, size: PlanSize): PlannedChange {
  const [{ name, args }] = fields
  const mutation = mutations[name]
  if (mutation === undefined) throw new Error(`src/graphql/mutation.ts has no ${name}`)
  const given = ({ variables }: Request): Given => ({
    text: argument => String(argumentIn(args.get(argument), variables)),
    optionalText(argument) {
      const value = argumentIn(args.get(argument), variables) ?? null
      return value === null ? null : String(value)
    },
    id: argument => idIn(args.get(argument), variables),
  })
  if (mutation.shows === undefined) return { key, change: request => mutation.change(given(request)) }
  const plan = planShown(mutation.shows, key, fields, variables, size)
  return { key, change: request => mutation.change(given(request), showOf(plan, request)) }
}

/** The arguments of a mutation in one request. */
interface Given {
  text(argument: string): string
  /** `null` if the argument is not given, or given as null. */
  optionalText(argument: string): string | null
  id(argument: string): number | null
}

type Mutation =
  | { readonly shows?: never; readonly change: (given: Given) => RequestedChange }
  | { readonly shows: 'post' | 'comment'; readonly change: (given: Given, show: Show) => RequestedChange }

/** What each mutation changes, and what its selection is read from. */
export const mutations: Readonly<Record<string, Mutation>> = {
  createPost: {
    shows: 'post',
    change: ({ text }, show) => ({ kind: 'create a post', title: text('title'), content: text('content'), show }),
  },
  addComment: {
    shows: 'comment',
    change: ({ id, text }, show) => ({ kind: 'add a comment', postId: id('postId'), text: text('text'), show }),
  },
  likePost: {
    shows: 'post',
    change: ({ id }, show) => ({ kind: 'like a post', id: id('id'), show }),
  },
  updatePost: {
    shows: 'post',
    change: ({ id, optionalText }, show) => ({
      kind: 'update a post',
      id: id('id'),
      title: optionalText('title'),
      content: optionalText('content'),
      show,
    }),
  },
  updateComment: {
    shows: 'comment',
    change: ({ id, text }, show) => ({ kind: 'update a comment', commentId: id('id'), text: text('text'), show }),
  },
  deletePost: { change: ({ id }) => ({ kind: 'delete a post', id: id('id') }) },
  deleteComment: { change: ({ id }) => ({ kind: 'delete a comment', commentId: id('id') }) },
}
