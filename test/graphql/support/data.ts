import fc from 'fast-check'
import { type Statement, sql } from '../../../src/storage/sql.ts'
import type { TestDatabase } from '../../support/engines.ts'

/** All readable data, as JavaScript objects. */
export interface Data {
  readonly users: readonly UserRow[]
  readonly posts: readonly PostRow[]
  readonly comments: readonly CommentRow[]
}

export interface UserRow extends Partial<UserOptions> {
  readonly id: number
  readonly name: string
  readonly email: string
  readonly createdAt: string
}

export interface PostRow {
  readonly id: number
  readonly authorId: number
  readonly title: string
  readonly content: string
  readonly likes: number
  readonly publishedAt: string | null
  /** Null if it was never updated. */
  readonly updatedAt?: string | null
}

export interface CommentRow {
  readonly id: number
  readonly postId: number
  readonly authorId: number
  readonly text: string
  readonly createdAt: string
  readonly updatedAt?: string | null
}

/** A few instants only, so that several posts have the same one. */
export const instants: readonly string[] = [
  ...['2026-01-31T12:00:00.000Z', '2026-01-31T12:00:00.001Z', '2026-02-28T23:59:59.999Z', '1969-12-31T23:59:59.999Z'],
  ...['0001-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z', '1970-01-01T00:00:00.000Z'],
]

/** Texts that could be misread in JSON or in SQL. */
const doubtful = [
  ...['"', '\\', "'", '\u2028\u2029', '\u0001\b\f\n\r\t\u001f\u007f', '👩‍👩‍👧‍👦 Zoë 漢字 \u{10ffff}', '\ufeff', ' '],
  ...['{"a":1}', '[]', 'null', 'true', '1', '1e3', '$1', '?1', '%s', "'; drop table posts; --", '\\u0041', '</script>'],
]

/**
 * Any character except U+0000 and surrogates. The `binary` unit of fast-check is the same, but needs a second to
 * prepare.
 */
const character = fc
  .oneof(
    fc.integer({ min: 1, max: 0x7f }),
    fc.integer({ min: 0x80, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
  )
  .map(code => String.fromCodePoint(code))

/** Any text that can be stored, up to this length. */
function texts(longest: number): fc.Arbitrary<string> {
  const any = fc.string({ unit: character, minLength: 1, maxLength: Math.min(longest, 12) })
  return fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom('a', 'Ann', 'A longer text of several words', ...doubtful) },
    { weight: 3, arbitrary: any },
    { weight: 1, arbitrary: any.map(text => text.repeat(longest).slice(0, Math.min(longest, 500)).toWellFormed()) },
  )
}

/** The optional fields of users, by their names in GraphQL, and the values that random users have in them. */
export const userOptions = {
  avatar: fc.option(texts(2048)),
}

type UserOptions = { readonly [Name in keyof typeof userOptions]: ValueOf<(typeof userOptions)[Name]> }
type ValueOf<Values> = Values extends fc.Arbitrary<infer Value> ? Value : never

export interface DataSize {
  readonly users: number
  readonly posts: number
  readonly comments: number
  /** The maximum length of contents and comments. */
  readonly longest: number
}

/** Ids in random order, with gaps, up to the largest valid id. */
function ids(count: number): fc.Arbitrary<number[]> {
  const id = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max: 4 * count + 1 }) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }) },
  )
  return fc.uniqueArray(id, { minLength: count, maxLength: count })
}

export function datas({ users, posts, comments, longest }: DataSize): fc.Arbitrary<Data> {
  const instant = fc.constantFrom(...instants)
  const author = fc.nat(Math.max(0, users - 1))
  const likes = fc.oneof(fc.nat(3), fc.constant(2_147_483_647), fc.nat(2_147_483_647))
  const long = fc.oneof(
    { weight: 8, arbitrary: texts(longest) },
    { weight: 1, arbitrary: fc.constantFrom('x', '"', '\u0001', '漢').map(letter => letter.repeat(longest)) },
  )
  const userRow = fc.record({ name: texts(320), email: texts(320), ...userOptions, createdAt: instant })
  const postRow = fc.record({
    by: author,
    title: texts(300),
    content: long,
    likes,
    publishedAt: fc.option(instant, { freq: 3 }),
    updatedAt: fc.option(instant, { freq: 1 }),
  })
  const on = fc.nat(Math.max(0, posts - 1))
  const commentRow = fc.record({
    ...{ by: author, on, text: long },
    ...{ createdAt: instant, updatedAt: fc.option(instant, { freq: 1 }) },
  })
  const rows = <Item>(item: fc.Arbitrary<Item>, count: number) => fc.array(item, { minLength: count, maxLength: count })
  return fc
    .record({
      users: rows(userRow, users),
      userIds: ids(users),
      posts: rows(postRow, posts),
      postIds: ids(posts),
      comments: rows(commentRow, comments),
      commentIds: ids(comments),
    })
    .map(made => ({
      users: made.users.map((row, at) => ({ ...row, id: made.userIds[at] ?? 0 })),
      posts: made.posts.map(({ by, ...row }, at) => ({
        ...row,
        id: made.postIds[at] ?? 0,
        authorId: made.userIds[by] ?? 0,
      })),
      comments: made.comments.map(({ by, on, ...row }, at) => ({
        ...row,
        id: made.commentIds[at] ?? 0,
        postId: made.postIds[on] ?? 0,
        authorId: made.userIds[by] ?? 0,
      })),
    }))
}

/** The statements that replace the content of a database with this data. */
export function insertsOf({ users, posts, comments }: Data, kind: TestDatabase['kind']): readonly Statement[] {
  const own = kind === 'postgres' ? ' overriding system value' : ''
  return [
    sql`delete from comments`,
    sql`delete from posts`,
    sql`delete from users`,
    ...users.map(user => insertInto('users', { ...user, tokenMark: tokenVersionOf(user.id) })),
    ...posts.map(post => insertInto('posts', post, own)),
    ...comments.map(comment => insertInto('comments', comment, own)),
  ]
}

/** Inserts only the columns that have a value, so that it also works with an older schema. */
function insertInto(table: string, row: object, own = ''): Statement {
  const given = Object.entries(row).filter(([, value]) => value !== null)
  const columns = given.map(([name]) => name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`))
  const places = given.map((_, index) => `$${index + 1}`)
  return {
    text: `insert into ${table} (${columns.join(', ')})${own} values (${places.join(', ')})`,
    values: given.map(([, value]) => value),
  }
}

/** The token version of a user in the test data. */
export function tokenVersionOf(id: number): string {
  return `version of ${id}`
}
