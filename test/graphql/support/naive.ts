import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { GraphQLSchema } from 'graphql'
import { buildSchema, execute, getNamedType, isScalarType, Kind, parse } from 'graphql'
import type { CommentRow, Data, PostRow, UserRow } from './data.ts'

/**
 * The same schema, executed by graphql-js. Each resolver searches in plain arrays: slow, but obviously right. It shares
 * no code with the service.
 */
export const naiveSchema: GraphQLSchema = schemaOf()

function schemaOf(): GraphQLSchema {
  const path = join(import.meta.dirname, '..', '..', '..', 'api', 'schema.graphql')
  const schema = buildSchema(readFileSync(path, 'utf8'))
  const dateTime = schema.getType('DateTime')
  if (!isScalarType(dateTime)) throw new Error('The schema has no DateTime')
  dateTime.coerceInputValue = value => new Date(String(value)).getTime()
  dateTime.coerceInputLiteral = node => (node.kind === Kind.STRING ? new Date(node.value).getTime() : undefined)
  return schema
}

/** Selects an implementation for each mutation, by the type that the mutation returns. */
export function mutationsBy<Made>(made: Readonly<Record<string, Made>>): Readonly<Record<string, Made>> {
  const fields = Object.entries(naiveSchema.getMutationType()?.getFields() ?? {})
  return Object.fromEntries(
    fields.map(([name, { type }]) => {
      const own = made[getNamedType(type).name]
      if (own === undefined) throw new Error(`The tests have no implementation of ${name}: ${type}`)
      return [name, own]
    }),
  )
}

interface PageArgs {
  readonly limit?: number | null
  readonly offset?: number | null
  readonly after?: string | null
}

interface PostsArgs extends PageArgs {
  readonly publishedAfter?: number | null
  readonly publishedBefore?: number | null
}

interface Row {
  readonly id: number
}

/** `order` is the sort order of the items. */
function page<Item extends Row>(
  items: readonly Item[],
  { limit, offset, after }: PageArgs,
  order: (one: Row, other: Row) => number,
): readonly Item[] {
  const following =
    after === undefined || after === null ? items : items.filter(item => order(item, { id: Number(after) }) > 0)
  return following.slice(offset ?? 0, (offset ?? 0) + (limit ?? 10))
}

const byId = (one: Row, other: Row) => one.id - other.id
const newestFirst = (one: Row, other: Row) => other.id - one.id
const latestFirst = (one: PostRow, other: PostRow) => instantOf(other) - instantOf(one) || newestFirst(one, other)

function instantOf({ publishedAt }: PostRow): number {
  return publishedAt === null ? Number.NaN : Date.parse(publishedAt)
}

export function lastUpdateOf(row: PostRow | CommentRow): string {
  return row.updatedAt ?? ('createdAt' in row ? row.createdAt : row.publishedAt) ?? '1970-01-01T00:00:00.000Z'
}

/** The root value of a query over this data. Rows are looked up when they are requested. */
export class NaiveQuery {
  readonly #data: () => Data
  readonly #me: number | undefined

  constructor(data: () => Data, me?: number) {
    this.#data = data
    this.#me = me
  }

  users(args: PageArgs) {
    return page([...this.#data().users].sort(byId), args, byId).map(this.shownUser)
  }

  posts({ publishedAfter, publishedBefore, ...args }: PostsArgs) {
    const [after, before] = [publishedAfter ?? undefined, publishedBefore ?? undefined]
    if (after === undefined && before === undefined)
      return page([...this.#data().posts].sort(newestFirst), args, newestFirst).map(this.shownPost)
    const within = this.#data()
      .posts.filter(({ publishedAt }) => publishedAt !== null)
      .filter(post => after === undefined || instantOf(post) > after)
      .filter(post => before === undefined || instantOf(post) < before)
    return page(within.sort(latestFirst), args, newestFirst).map(this.shownPost)
  }

  user({ id }: { readonly id: string }) {
    return this.#userWith(row => String(row.id) === id)
  }

  post({ id }: { readonly id: string }) {
    const row = this.#data().posts.find(post => String(post.id) === id)
    return row === undefined ? null : this.shownPost(row)
  }

  me() {
    return this.#userWith(({ id }) => id === this.#me)
  }

  #userWith(isWanted: (row: UserRow) => boolean) {
    const row = this.#data().users.find(isWanted)
    return row === undefined ? null : this.shownUser(row)
  }

  readonly shownUser = (row: UserRow): object => ({
    ...row,
    posts: (args: PageArgs) => {
      const own = this.#data().posts.filter(({ authorId }) => authorId === row.id)
      return page(own.sort(newestFirst), args, newestFirst).map(this.shownPost)
    },
  })

  readonly shownPost = (row: PostRow): object => ({
    ...row,
    updatedAt: lastUpdateOf(row),
    author: () => this.#userWith(({ id }) => id === row.authorId),
    commentCount: () => this.#commentsOf(row).length,
    comments: (args: PageArgs) => page(this.#commentsOf(row), args, byId).map(this.shownComment),
  })

  #commentsOf({ id }: PostRow) {
    return this.#data()
      .comments.filter(({ postId }) => postId === id)
      .sort(byId)
  }

  readonly shownComment = (row: CommentRow): object => ({
    ...row,
    updatedAt: lastUpdateOf(row),
    author: () => this.#userWith(({ id }) => id === row.authorId),
    post: () => this.post({ id: String(row.postId) }),
  })
}

/** The JSON of the data that graphql-js returns for an operation, with its keys in order. */
export function naiveAnswer(
  text: string,
  variableValues: Readonly<Record<string, unknown>>,
  rootValue: object,
): string {
  const result = execute({ schema: naiveSchema, document: parse(text), rootValue, variableValues })
  if (result instanceof Promise) throw new Error('Execution must be synchronous')
  if (!('data' in result) || result.errors !== undefined) throw new Error(JSON.stringify(result))
  return JSON.stringify(result.data)
}

/** A JSON text without optional differences: white space between tokens, and the way characters are escaped. */
export function normalised(json: string): string {
  return json.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|\s+/g, part =>
    part.startsWith('"') ? JSON.stringify(JSON.parse(part)) : '',
  )
}
