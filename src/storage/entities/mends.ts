import { loginKeyOf, nameKeyOf } from '../../core/users/user.ts'
import { type Row, type Statement, sql } from '../sql.ts'
import type { Steps } from '../verb.ts'
import { outboxVerbs } from './outbox.ts'

/**
 * What the schema derives from other data, made right for some rows after an id. Migrations fill new columns with it, and
 * `duet repair` looks for rows that another program has left wrong. Each runs beside a service.
 */
export const mends = {
  *mendCommentCounts(after: number): Steps<Mended> {
    // The lock first: comments that are added meanwhile are counted by the trigger after this transaction.
    const posts = yield sql`select id from posts where id > ${after} order by id limit ${together} for no key update`
    const wrong = yield sql`
      update posts set comment_count = counted.comments
      from (select posts.id, count(comments.id) as comments from posts left join comments on comments.post_id = posts.id
            where posts.id > ${after} and posts.id <= ${Number(posts.at(-1)?.[0] ?? after)} group by posts.id) as counted
      where counted.id = posts.id and comment_count <> counted.comments returning 1`
    return mended(wrong.length, posts)
  },

  mendEmailKeys: (after: number) => mendKeys('email', after, loginKeyOf),

  mendNameKeys: (after: number) => mendKeys('name', after, nameKeyOf),

  /** Of events, in PostgreSQL. They are found by having none. */
  *givePositions(): Steps<Mended> {
    const left = yield* outboxVerbs.sequenceEvents(sql`select 1 from outbox where position is null limit 1`)
    return { rows: 0, last: left.length }
  },
}

export interface Mended {
  /** How many rows were wrong. */
  readonly rows: number
  /** The id to go on after, or 0 at the end. */
  readonly last: number
}

const together = 1_000

function mended(rows: number, seen: readonly Row[]): Mended {
  return { rows, last: seen.length < together ? 0 : Number(seen.at(-1)?.[0]) }
}

function* mendKeys(column: 'email' | 'name', after: number, keyOf: (text: string) => string): Steps<Mended> {
  const users = yield {
    text: `select id, ${column}, ${column}_key from users where id > $1 order by id limit ${together} for no key update`,
    values: [after],
  }
  const wrong = users.flatMap(([id = null, text, key]) => {
    const right = keyOf(String(text))
    return key === right ? [] : [[id, right]]
  })
  if (wrong.length > 0) yield keyed(column, wrong)
  return mended(wrong.length, users)
}

function keyed(column: 'email' | 'name', users: readonly Row[]): Statement {
  const places = users.map((_, at) => `($${2 * at + 1}, $${2 * at + 2})`)
  return {
    text: `update users set ${column}_key = given.column2 from (values ${places.join(', ')}) as given
           where users.id = cast(given.column1 as bigint)`,
    values: users.flat(),
  }
}
