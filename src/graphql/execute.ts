import { executeSync, type FieldNode, type GraphQLSchema, Kind } from 'graphql'
import type { Actor } from '../core/actor.ts'
import { AppError } from '../core/errors.ts'
import type { Fields } from '../core/input.ts'
import type { AskedChange, Posts } from '../core/posts/operations.ts'
import type { Show } from '../core/store.ts'
import type { Documents, PreparedOperation } from './documents.ts'
import { Refusal, refusal, refusalFor } from './errors.ts'
import type { Subscription } from './fan-out.ts'
import { type Cost, costOf } from './limits/cost.ts'
import { collect, idIn, type Plan, Planner, type Source, shapeKey, valuesOf } from './plan.ts'
import { argumentIn, type Field, type Variables } from './tree.ts'

export interface ExecutorParts {
  readonly schema: GraphQLSchema
  readonly documents: Documents
  readonly posts: Posts
  readonly maxComplexity: number
}

/** What a client sends, whatever it came with. */
export interface OperationRequest {
  readonly query: string
  readonly operationName: string | undefined
  readonly variables: Fields
}

/**
 * The one way of an operation, from its text to the JSON of its `data`: document, variables, cost, access, then the store.
 * Whatever is wrong is thrown as a refusal, and then nothing has happened.
 */
export class Executor {
  readonly #schema: GraphQLSchema
  readonly #documents: Documents
  readonly #posts: Posts
  readonly #maxComplexity: number
  readonly #plans = new WeakMap<PreparedOperation, Map<string, QueryPlan>>()

  constructor({ schema, documents, posts, maxComplexity }: ExecutorParts) {
    this.#schema = schema
    this.#documents = documents
    this.#posts = posts
    this.#maxComplexity = maxComplexity
  }

  prepare({ query, operationName }: OperationRequest): PreparedOperation {
    return this.#documents.prepare(query).operation(operationName)
  }

  async execute(operation: PreparedOperation, inputs: Fields, actor: Actor): Promise<string> {
    let keys: readonly string[] = []
    try {
      const variables = operation.coerce(inputs)
      this.#afford(costOf(operation.tree, variables))
      if (operation.kind === 'query') return await this.#query(operation, variables, actor)
      const changes = this.#changes(operation, variables, actor)
      keys = changes.keys
      return await this.#mutate(changes, actor)
    } catch (error) {
      if (error instanceof Refusal || !(error instanceof AppError)) throw error
      const key = error.at === undefined ? undefined : keys[error.at]
      throw refusalFor(error, key === undefined ? undefined : [key])
    }
  }

  /** What a subscription wants, when it may be told. */
  subscription(operation: PreparedOperation, inputs: Fields, actor: Actor): Subscription {
    try {
      const variables = operation.coerce(inputs)
      this.#afford(costOf(operation.tree, variables))
      const [field] = collect([operation.tree], variables)
      if (field === undefined) throw refusal('BAD_REQUEST', 'The subscription selects nothing.')
      const subscription = subscriptionOf(...field, variables, actor)
      this.#posts.authorise(actor, subscription.selection, subscription.values)
      return subscription
    } catch (error) {
      throw error instanceof AppError ? refusalFor(error, undefined) : error
    }
  }

  #afford({ data, introspection }: Cost): void {
    const [cost, limit] =
      introspection > introspectionBound ? [introspection, introspectionBound] : [data, this.#maxComplexity]
    if (cost <= limit) return
    // Fragments within fragments can cost more than a number holds.
    const told = Math.min(cost, Number.MAX_SAFE_INTEGER)
    throw refusal('COMPLEXITY_LIMIT_EXCEEDED', `The operation costs ${told}; ${limit} is allowed.`, {
      cost: told,
      limit,
    })
  }

  async #query(operation: PreparedOperation, variables: Variables, actor: Actor): Promise<string> {
    const { plan, reads } = this.#planOf(operation, variables)
    const values = valuesOf(plan, { variables, actor })
    if (reads) return this.#posts.read(actor, plan.selection, values)
    const entries = plan.selection.wishes.map(wish => [
      JSON.stringify(wish.key),
      wish.kind === 'json' ? values[wish.slot] : wish.kind === 'text' ? JSON.stringify(wish.text) : '[]',
    ])
    return `{${entries.map(entry => entry.join(':')).join(',')}}`
  }

  #planOf(operation: PreparedOperation, variables: Variables): QueryPlan {
    let plans = this.#plans.get(operation)
    if (plans === undefined) {
      plans = new Map()
      this.#plans.set(operation, plans)
    }
    const key = shapeKey(variables)
    let plan = plans.get(key)
    if (plan === undefined) {
      plan = this.#plan(operation, variables)
      if (plans.size >= mostShapes) plans.clear()
      plans.set(key, plan)
    }
    return plan
  }

  #plan(operation: PreparedOperation, variables: Variables): QueryPlan {
    const planner = new Planner(variables)
    const wishes = [...collect([operation.tree], variables)].map(([key, fields]) => {
      const [first] = fields
      if (first.kind !== 'introspection') return planner.atTop(key, fields)
      return { kind: 'json', key, slot: planner.slot(this.#introspection(operation, fields)) } as const
    })
    const reads = wishes.some(({ kind }) => kind === 'one' || kind === 'many')
    return { plan: { selection: { wishes }, slots: planner.slots }, reads }
  }

  #introspection({ definition, fragments }: PreparedOperation, fields: readonly Field[]): Source {
    const selections = fields.map(({ node }) => node).filter((node): node is FieldNode => node !== undefined)
    const operation = { ...definition, selectionSet: { kind: Kind.SELECTION_SET, selections } as const }
    const document = { kind: Kind.DOCUMENT, definitions: [operation, ...fragments.values()] } as const
    return ({ variables }) => {
      const { data } = executeSync({ schema: this.#schema, document, variableValues: variables })
      return JSON.stringify(Object.values(data ?? {})[0] ?? null)
    }
  }

  #changes(operation: PreparedOperation, variables: Variables, actor: Actor): PlannedChanges {
    const fields = [...collect([operation.tree], variables)]
    const texts = new Map<string, string>()
    const changes: AskedChange[] = []
    const keys: string[] = []
    for (const [key, [first, ...others]] of fields) {
      if (first.kind === 'typename') texts.set(key, JSON.stringify(first.type))
      else {
        keys.push(key)
        changes.push(changeOf(key, [first, ...others], variables, actor))
      }
    }
    return { all: fields.map(([key]) => key), texts, changes, keys }
  }

  async #mutate({ all, texts, changes, keys }: PlannedChanges, actor: Actor): Promise<string> {
    const results = changes.length === 0 ? [] : await this.#posts.change(actor, changes)
    const entries = all.map(key => {
      const result = texts.get(key) ?? results[keys.indexOf(key)]
      const isShown = typeof result === 'string' && !texts.has(key)
      // What is shown comes as an object with this key alone.
      return isShown ? result.slice(1, -1) : `${JSON.stringify(key)}:${result}`
    })
    return `{${entries.join(',')}}`
  }
}

interface QueryPlan {
  readonly plan: Plan
  /** Whether anything of it is in the store. */
  readonly reads: boolean
}

interface PlannedChanges {
  /** The keys of the answer, those of changes among them. */
  readonly all: readonly string[]
  readonly keys: readonly string[]
  readonly changes: readonly AskedChange[]
  readonly texts: ReadonlyMap<string, string>
}

/** Plans kept of one operation. Its variables can shape it in so many ways before the oldest are made anew. */
const mostShapes = 32

/** Four times what the introspection of GraphiQL costs. */
const introspectionBound = 400_000

function subscriptionOf(
  key: string,
  fields: readonly [Field, ...Field[]],
  variables: Variables,
  actor: Actor,
): Subscription {
  const [{ name, args }] = fields
  if (name === 'postAdded') return { key, topic: { kind: 'posts' }, ...shown('post', key, fields, variables, actor) }
  // An id that cannot name a post is that of none.
  const postId = idIn(args.get('postId'), variables) ?? 0
  return { key, topic: { kind: 'comments', postId }, ...shown('comment', key, fields, variables, actor) }
}

/** The selection of a post or comment whose id is not known yet. */
function shown(
  root: 'post' | 'comment',
  key: string,
  fields: readonly Field[],
  variables: Variables,
  actor: Actor,
): Show {
  const planner = new Planner(variables)
  const id = planner.slot(() => null)
  const selection = { wishes: [{ kind: 'one', key, name: root, id, wishes: planner.inside(fields) }] } as const
  return { selection, id, values: valuesOf({ selection, slots: planner.slots }, { variables, actor }) }
}

function changeOf(key: string, fields: readonly [Field, ...Field[]], variables: Variables, actor: Actor): AskedChange {
  const [{ name, args }] = fields
  const text = (argument: string) => String(argumentIn(args.get(argument), variables))
  const show = (root: 'post' | 'comment') => shown(root, key, fields, variables, actor)
  const id = idIn(args.get('id'), variables)
  switch (name) {
    case 'createPost':
      return { kind: 'create post', title: text('title'), content: text('content'), show: show('post') }
    case 'addComment': {
      const postId = idIn(args.get('postId'), variables)
      return { kind: 'add comment', postId, text: text('text'), show: show('comment') }
    }
    case 'likePost':
      return { kind: 'like post', id, show: show('post') }
    case 'deletePost':
      return { kind: 'delete post', id }
    default:
      throw new Error(`No mutation is called ${name}`)
  }
}
