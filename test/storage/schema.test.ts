import assert from 'node:assert/strict'
import { it } from 'node:test'
import { AppError } from '../../src/core/errors.ts'
import { type Statement, sql } from '../../src/storage/sql.ts'
import { engineKinds } from '../support/engines.ts'
import { catalogue } from './contract-verbs.ts'

const at = '2026-01-31T12:00:00.000Z'

const user = sql`insert into users (id, name, email, token_mark, created_at) values (1, 'Ada', 'ada@example.com', 'm', ${at})`
const payment = sql`insert into payments (amount_cents, payer_id, created_at) values (5000, 1, ${at})`
const order = sql`insert into orders (user_id, amount_cents, created_at) values (1, 5000, ${at})`
const ship = (paymentId: number | null, carrier: string | null, shippedAt: string | null, id = 1) =>
  sql`update orders set status = 'shipped', payment_id = ${paymentId}, tracking_carrier = ${carrier},
      tracking_number = ${`T${id}`}, shipped_at = ${shippedAt} where id = ${id}`
const item = (quantity: number) =>
  sql`insert into order_items (order_id, name, quantity, price) values (1, 'x', ${quantity}, 1)`
const key = (caller: number | null, paymentId: number | null) =>
  sql`insert into idempotency_keys (caller_id, scope, key, payment_id, expires_at)
      values (${caller}, '/payments', 'k', ${paymentId}, ${at})`
const post = sql`insert into posts (author_id, title, content, published_at) values (1, 'T', 'C', ${at})`
const comment = sql`insert into comments (post_id, author_id, text, created_at) values (1, 1, 'Hi', ${at})`
const event = (kind: string, postId: number | null, commentId: number | null, userId: number | null) =>
  sql`insert into outbox (kind, post_id, comment_id, user_id, created_at)
      values (${kind}, ${postId}, ${commentId}, ${userId}, ${at})`

const unpaid = [user, payment, order]
const shipped = [...unpaid, ship(1, 'DHL', at)]

/** States that must not exist: each list of statements has to be refused as a whole. */
const impossible: Readonly<Record<string, readonly Statement[]>> = {
  'a shipped order without a payment': [user, order, ship(null, 'DHL', at)],
  'a shipped order without tracking': [...unpaid, ship(1, null, at)],
  'a shipped order without a date': [...unpaid, ship(1, 'DHL', null)],
  'a pending order with a payment': [...unpaid, sql`update orders set payment_id = 1 where id = 1`],
  'an order paid with another amount': [...unpaid, sql`update payments set amount_cents = 4999`, ship(1, 'DHL', at)],
  'two orders paid by one payment': [...shipped, order, ship(1, 'DHL', at, 2)],
  'an order paid by a payment that does not exist': [user, order, ship(77, 'DHL', at)],
  'a paid order whose amount changes': [...shipped, sql`update orders set amount_cents = 100 where id = 1`],
  'a payment that an order refers to, deleted': [...shipped, sql`delete from payments where id = 1`],
  'an order with another status': [user, order, sql`update orders set status = 'paid' where id = 1`],
  'an order of amount 0': [user, order, sql`update orders set amount_cents = 0`],
  'a payment of amount 0': [user, payment, sql`update payments set amount_cents = 0`],
  'a payment above the limit': [user, payment, sql`update payments set amount_cents = 100000000000001`],
  'a key without a payment': [user, key(1, null)],
  'a key with a payment that does not exist': [user, key(1, 5)],
  'a key claimed twice by one caller': [user, payment, key(1, 1), key(1, 1)],
  'a key claimed twice by anonymous callers': [user, payment, key(null, 1), key(null, 1)],
  'an item without an order': [item(1)],
  'an item of quantity 0': [user, order, item(0)],
  'a user without a name': [user, sql`update users set name = ''`],
  'a user with id 0': [user, sql`update users set id = 0`],
  'a user with an id that JSON cannot keep exact': [user, sql`update users set id = 9007199254740992`],
  'two users with one id': [user, user],
  'a user of age 151': [user, sql`update users set age = 151`],
  'a user of another role': [user, sql`update users set role = 'owner'`],
  'a login without a password': [user, sql`update users set login_key = 'ada@example.com'`],
  'a password without a login': [user, sql`update users set password_hash = 'hash'`],
  'two logins with one e-mail': [
    user,
    { ...user, text: user.text.replace('(1,', '(2,') },
    sql`update users set login_key = 'ada@example.com', password_hash = 'hash'`,
  ],
  'a post without an author': [post],
  'a post with negative likes': [user, post, sql`update posts set likes = -1`],
  'a post with a negative number of comments': [user, post, sql`update posts set comment_count = -1`],
  'a post with an instant in another form': [user, post, sql`update posts set published_at = '2026-01-31'`],
  'an update of a post in another form': [user, post, sql`update posts set updated_at = '2026-01-31'`],
  'an update of a comment in another form': [user, post, comment, sql`update comments set updated_at = '2026-01-31'`],
  'a comment without a post': [user, comment],
  'an event of an unknown kind': [event('post-changed', 1, null, null)],
  'a comment event without its comment': [event('comment-added', 1, null, null)],
  'an event about a deleted comment without the comment': [event('comment-deleted', 1, null, null)],
  'an event about an updated post with a comment': [event('post-updated', 1, 1, null)],
  'a user event without its user': [event('user-revoked', null, null, null)],
}

const resetIds = {
  sqlite: sql`delete from sqlite_sequence`,
  postgres: sql`select setval(id, 1, false)
                from unnest(array['posts_id_seq', 'comments_id_seq', 'payments_id_seq', 'orders_id_seq']) as id`,
}

for (const kind of engineKinds) {
  it(`the schema rejects invalid states on ${kind.name}`, { skip: kind.skip }, async t => {
    await using database = await kind.create()
    await using engine = database.open(catalogue)
    for (const [state, statements] of Object.entries(impossible)) {
      await t.test(state, async () => {
        // Ids are reset, because the statements contain ids. All statements except the last must succeed.
        await assert.rejects(engine.write('run', [resetIds[kind.kind], ...statements]), isConstraintFault)
      })
    }
  })
}

function isConstraintFault(error: unknown): boolean {
  assert.ok(error instanceof AppError && error.code === 'fault', String(error))
  assert.match(String((error.cause as Error).message), /constraint|PostgreSQL 23|PostgreSQL 22003/i)
  return true
}
