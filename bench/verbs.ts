import { sql } from '../src/storage/sql.ts'
import type { Catalogue, Steps } from '../src/storage/verb.ts'

const at = '2026-01-31T12:00:00.000Z'

/** What the benchmarks write: a payment (a row in a table with two indexes) and a like (a row changed in place). */
export const verbs = {
  *like(id: number): Steps<'liked'> {
    yield like(id)
    return 'liked'
  },

  *pay(amount: number): Steps<number> {
    const [row] = yield payment(amount)
    return Number(row?.[0])
  },
}

export function like(id: number) {
  return sql`update posts set likes = likes + 1 where id = ${id}`
}

export function payment(amount: number) {
  return sql`insert into payments (amount_cents, created_at) values (${amount}, ${at}) returning id`
}

export const preparation = [
  sql`insert into users (id, name, email, token_mark, created_at) values (1, 'Ada', 'ada@example.com', 'm', ${at})`,
  ...Array.from({ length: 64 }, () => sql`insert into posts (author_id, title, content) values (1, 'T', 'C')`),
]

export const catalogue: Catalogue<typeof verbs> = { url: import.meta.url, verbs }
