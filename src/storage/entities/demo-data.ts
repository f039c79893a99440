import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Role } from '../../core/actor.ts'
import { demoLogin } from '../../core/demo.ts'
import { amountOf, type OrderItem } from '../../core/orders/order.ts'
import type { Passwords, Randomness } from '../../core/ports.ts'
import type { Engine } from '../engine.ts'
import { sql } from '../sql.ts'
import type { Steps } from '../verb.ts'
import { itemRows, ship } from './orders.ts'

/**
 * Fills an empty database with demo data. The ids are fixed, so the documentation can name them. A database that is not
 * empty is left unchanged.
 */
export async function seedDemoData(
  engine: Engine<typeof demoVerbs>,
  passwords: Passwords,
  randomness: Randomness,
): Promise<'seeded' | 'not empty'> {
  const [row] = await engine.read(emptiness)
  if (row?.[0] !== 1) return 'not empty'
  const data = JSON.parse(readFileSync(file, 'utf8')) as DemoData
  return engine.write('seedDemoData', data, await passwords.hash(demoLogin.password), randomness.id())
}

// The counter is above 1 if there ever was a user, even if all users were deleted.
const emptiness = sql`select count(*) from counters where name = 'users' and next = 1
                      and not exists (select 1 from users) and not exists (select 1 from orders)`

export const demoVerbs = {
  *seedDemoData(data: DemoData, hash: string, tokenVersion: string): Steps<'seeded' | 'not empty'> {
    yield sql`select next from counters where name = 'users' for update`
    const [empty] = yield emptiness
    if (empty?.[0] !== 1) return 'not empty'
    yield* insertUsers(data, hash, tokenVersion)
    yield* insertPosts(data)
    yield* insertOrders(data)
    return 'seeded'
  },
}

/** `migrations/demo-data.json`. The ids are the places in the lists. */
interface DemoData {
  readonly people: readonly {
    readonly name: string
    readonly email: string
    readonly age: number
    readonly role: Role
  }[]
  readonly titles: readonly string[]
  readonly remarks: readonly string[]
  readonly orders: readonly { readonly user: number; readonly shipped: boolean; readonly items: readonly OrderItem[] }[]
}

const file = join(import.meta.dirname, '..', '..', '..', 'migrations', 'demo-data.json')

function* insertUsers({ people }: DemoData, hash: string, tokenVersion: string): Steps<void> {
  for (const [index, { name, email, age, role }] of people.entries()) {
    const login = index < 2 ? { key: email, hash } : { key: null, hash: null }
    yield sql`insert into users (id, name, email, age, role, email_key, login_key, password_hash, token_mark, created_at)
              values (${index + 1}, ${name}, ${email}, ${age}, ${role}, ${email}, ${login.key}, ${login.hash},
                      ${`${tokenVersion}-${index}`}, now_plus(${-(60 - index) * day}))`
  }
  yield sql`update counters set next = ${people.length + 1} where name = 'users'`
}

const day = 86_400

function* insertPosts({ people, titles, remarks }: DemoData): Steps<void> {
  for (const [index, title] of titles.entries()) {
    const author = (index % people.length) + 1
    const comments = index % 4
    yield sql`insert into posts (author_id, title, content, likes, comment_count, published_at)
              values (${author}, ${title}, ${`${title}. A few thoughts, written down before they fade.`},
                      ${(index * 7) % 23}, ${comments}, now_plus(${-(titles.length - index) * day}))`
    for (let remark = 0; remark < comments; remark++) {
      const commenter = ((index + remark + 1) % people.length) + 1
      yield sql`insert into comments (post_id, author_id, text, created_at)
                values (${index + 1}, ${commenter}, ${remarks[remark] ?? ''}, now_plus(${-(titles.length - index) * day}))`
    }
  }
}

function* insertOrders({ orders }: DemoData): Steps<void> {
  for (const [index, { user, shipped, items }] of orders.entries()) {
    const cents = amountOf(items) * 100
    yield sql`insert into orders (user_id, amount_cents, created_at) values (${user}, ${cents}, now_plus(${-9 * day}))`
    yield itemRows(index + 1, items)
    if (shipped) yield* pay(index + 1, user, cents)
  }
}

function* pay(order: number, payer: number, cents: number): Steps<void> {
  const [payment] = yield sql`insert into payments (amount_cents, payer_id, created_at)
                              values (${cents}, ${payer}, now_plus(${-8 * day})) returning id`
  yield ship(order, Number(payment?.[0]), -7 * day)
}
