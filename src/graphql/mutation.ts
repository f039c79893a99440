import { AppError } from '../core/errors.ts'
import type { AskedChange, Posts } from '../core/posts/operations.ts'
import type { PreparedOperation } from './documents.ts'
import { refusalFor } from './errors.ts'
import { collect, idIn, type Merged, planShown, type Request, showOf } from './plan.ts'
import { argumentIn, type Variables } from './tree.ts'

/** The entries of the answer, in their order: a text that is always the same, or a change. */
export type MutationPlan = readonly (PlannedText | PlannedChange)[]

interface PlannedText {
  readonly key: string
  readonly text: string
}

interface PlannedChange {
  readonly key: string
  readonly change: (request: Request) => AskedChange
}

export function planMutation({ tree }: PreparedOperation, variables: Variables): MutationPlan {
  return [...collect([tree], variables)].map(([key, fields]) =>
    fields[0].kind === 'typename' ? { key, text: fields[0].type } : { key, change: planChange(key, fields, variables) },
  )
}

/** Makes the changes, all or none, and gives the JSON of the answer's data. */
export async function runMutation(plan: MutationPlan, request: Request, posts: Posts): Promise<string> {
  const planned = plan.filter(entry => 'change' in entry)
  const results = await change(planned, request, posts)
  const entries = plan.map(entry => {
    if ('text' in entry) return `${JSON.stringify(entry.key)}:${JSON.stringify(entry.text)}`
    const result = results[planned.indexOf(entry)]
    // What is shown comes as an object with this key alone.
    return typeof result === 'string' ? result.slice(1, -1) : `${JSON.stringify(entry.key)}:${result}`
  })
  return `{${entries.join(',')}}`
}

async function change(planned: readonly PlannedChange[], request: Request, posts: Posts) {
  if (planned.length === 0) return []
  try {
    return await posts.change(
      request.actor,
      planned.map(({ change }) => change(request)),
    )
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    const failed = error.at === undefined ? undefined : planned[error.at]
    throw refusalFor(error, failed && [failed.key])
  }
}

function planChange(key: string, fields: Merged, variables: Variables): PlannedChange['change'] {
  const [{ name, args }] = fields
  const text = (argument: string, { variables }: Request) => String(argumentIn(args.get(argument), variables))
  const id = (argument: string, { variables }: Request) => idIn(args.get(argument), variables)
  switch (name) {
    case 'createPost': {
      const plan = planShown('post', key, fields, variables)
      return request => {
        const [title, content] = [text('title', request), text('content', request)]
        return { kind: 'create post', title, content, show: showOf(plan, request) }
      }
    }
    case 'addComment': {
      const plan = planShown('comment', key, fields, variables)
      return request => {
        const [postId, said] = [id('postId', request), text('text', request)]
        return { kind: 'add comment', postId, text: said, show: showOf(plan, request) }
      }
    }
    case 'likePost': {
      const plan = planShown('post', key, fields, variables)
      return request => ({ kind: 'like post', id: id('id', request), show: showOf(plan, request) })
    }
    case 'deletePost':
      return request => ({ kind: 'delete post', id: id('id', request) })
    default:
      throw new Error(`No mutation is called ${name}`)
  }
}
