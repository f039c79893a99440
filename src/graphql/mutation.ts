import { AppError } from '../core/errors.ts'
import type { Posts, RequestedChange } from '../core/posts/operations.ts'
import type { Show } from '../core/store.ts'
import { refusalFromCore } from './errors.ts'
import type { PreparedOperation } from './language/documents.ts'
import type { PlanSize } from './language/limits/plan-size.ts'
import { checkSkippedRows, type Skip, skippedRows } from './language/limits/skipped-rows.ts'
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
  /** Lists with an offset in the selection that is returned. */
  readonly skips: readonly Skip[]
}

/** Plans all changes of an operation. They share one size limit. */
export function planMutation({ tree }: PreparedOperation, variables: Variables, size: PlanSize): MutationPlan {
  return [...collect([tree], variables, size)].map(([key, fields]) =>
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
  checkSkippedRows(asked.reduce((sum, change, at) => sum + skippedBy(change, planned[at]?.skips), 0))
  try {
    return await posts.change(request.actor, asked)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    const failed = error.at === undefined ? undefined : planned[error.at]
    throw refusalFromCore(error, failed && [failed.key])
  }
}

function skippedBy(change: RequestedChange, skips: readonly Skip[] = []): number {
  return 'show' in change ? skippedRows(skips, change.show.values) : 0
}

function planChange(key: string, fields: Merged, variables: Variables, size: PlanSize): PlannedChange {
  const [{ name, args }] = fields
  const text = (argument: string, { variables }: Request) => String(argumentIn(args.get(argument), variables))
  const id = (argument: string, { variables }: Request) => idIn(args.get(argument), variables)
  const shown = (
    root: 'post' | 'comment',
    change: (request: Request, show: Show) => RequestedChange,
  ): PlannedChange => {
    const plan = planShown(root, key, fields, variables, size)
    return { key, skips: plan.skips, change: request => change(request, showOf(plan, request)) }
  }
  switch (name) {
    case 'createPost':
      return shown('post', (request, show) => {
        const [title, content] = [text('title', request), text('content', request)]
        return { kind: 'create post', title, content, show }
      })
    case 'addComment':
      return shown('comment', (request, show) => {
        const [postId, comment] = [id('postId', request), text('text', request)]
        return { kind: 'add comment', postId, text: comment, show }
      })
    case 'likePost':
      return shown('post', (request, show) => ({ kind: 'like post', id: id('id', request), show }))
    case 'deletePost':
      return { key, skips: [], change: request => ({ kind: 'delete post', id: id('id', request) }) }
    default:
      throw new Error(`Unknown mutation ${name}`)
  }
}
