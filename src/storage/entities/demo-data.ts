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
  return engine.write('seedDemoData', await passwords.hash(demoLogin.password), randomness.id())
}

// The counter is above 1 if there ever was a user, even if all users were deleted.
const emptiness = sql`select count(*) from counters where name = 'users' and next = 1
                      and not exists (select 1 from users) and not exists (select 1 from orders)`

export const demoVerbs = {
  *seedDemoData(hash: string, tokenVersion: string): Steps<'seeded' | 'not empty'> {
    yield sql`select next from counters where name = 'users' for update`
    const [empty] = yield emptiness
    if (empty?.[0] !== 1) return 'not empty'
    yield* insertUsers(hash, tokenVersion)
    yield* insertPosts()
    yield* insertOrders()
    return 'seeded'
  },
}

const people = [
  ['Ada Lovelace', 'ada@example.com', 36, 'admin'],
  ['Grace Hopper', 'grace@example.com', 85, 'member'],
  ['Alan Turing', 'alan@example.com', 41, 'member'],
  ['Katherine Johnson', 'katherine@example.com', 101, 'member'],
  ['Edsger Dijkstra', 'edsger@example.com', 72, 'member'],
] as const

function* insertUsers(hash: string, tokenVersion: string): Steps<void> {
  for (const [index, [name, email, age, role]] of people.entries()) {
    const login = index < 2 ? { key: email, hash } : { key: null, hash: null }
    yield sql`insert into users (id, name, email, age, role, email_key, login_key, password_hash, token_mark, created_at)
              values (${index + 1}, ${name}, ${email}, ${age}, ${role}, ${email}, ${login.key}, ${login.hash},
                      ${`${tokenVersion}-${index}`}, now_plus(${-(60 - index) * day}))`
  }
  yield sql`update counters set next = ${people.length + 1} where name = 'users'`
}

const day = 86_400

const titles = [
  'Notes on the analytical engine',
  'The first bug, taped into the log book',
  'Can machines think?',
  'Checking the trajectory by hand',
  'Go to statement considered harmful',
  'A compiler is a patient friend',
  'On computable numbers',
  'What a loop invariant tells you',
  'Why every nanosecond is thirty centimetres',
  'Landing where you meant to',
  'Weaving algebraic patterns',
  'Shortest paths in a café',
  'Programs that write programs',
  'Breaking ciphers before breakfast',
  'Trust the numbers, then verify them',
  'Simplicity is prerequisite for reliability',
  'A diagram for Bernoulli numbers',
  'It is easier to ask forgiveness',
  'The imitation game',
  'Testing shows the presence of bugs',
] as const

const remarks = ['I read this twice.', 'Would it work backwards, too?', 'This belongs on the wall.'] as const

function* insertPosts(): Steps<void> {
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

interface DemoOrder {
  readonly user: number
  readonly shipped: boolean
  readonly items: readonly OrderItem[]
}

const orders: readonly DemoOrder[] = [
  {
    user: 1,
    shipped: false,
    items: [
      { name: 'Punched cards, box of 500', quantity: 2, price: 40 },
      { name: 'Brass gear, 40 teeth', quantity: 1, price: 120 },
    ],
  },
  {
    user: 1,
    shipped: true,
    items: [
      { name: 'Drawing paper', quantity: 10, price: 3 },
      { name: 'India ink', quantity: 2, price: 8 },
    ],
  },
  { user: 2, shipped: false, items: [{ name: 'Length of wire, 30 cm', quantity: 100, price: 1 }] },
  { user: 2, shipped: true, items: [{ name: 'Log book', quantity: 1, price: 25 }] },
  { user: 3, shipped: false, items: [{ name: 'Paper tape, endless', quantity: 3, price: 15 }] },
  {
    user: 4,
    shipped: true,
    items: [
      { name: 'Slide rule', quantity: 1, price: 60 },
      { name: 'Pencils, dozen', quantity: 2, price: 4 },
    ],
  },
]

function* insertOrders(): Steps<void> {
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
