import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, test } from 'node:test'
import { moveToPostgres } from '../../src/storage/move.ts'
import { sql } from '../../src/storage/sql.ts'
import { catalogue } from '../../src/storage/verbs.ts'
import { execute } from '../faults/execute.ts'
import { startTestApp } from '../support/app.ts'
import { postgres, sqlite, type TestDatabase } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { query, read } from '../support/graphql.ts'
import type { RawResponse, Served } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { runDuet } from '../support/process.ts'
import { createMember, createOrder, createUser, logIn, pay, payOrder, send } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'
import { tablesOf } from '../support/tables.ts'

const { skip } = postgres
const odd = 'quotes \' " \\ tabs \t\n ünïcode 😀 {"a":1} $1 null'

const serve = ({ url }: TestDatabase) =>
  startTestApp({ DATABASE_URL: url, TOKEN_KEYS: tokenKeys, ACCESS_POLICY: 'enforced' })
const move = (source: TestDatabase, target: TestDatabase) =>
  runDuet(['move', '--to', target.location], { env: { DATABASE_URL: source.url, TOKEN_KEYS: tokenKeys } })

test('after duet move PostgreSQL gives the answers of SQLite, to reads and to what comes next', { skip }, async () => {
  await using source = await sqlite.create()
  await using target = await postgres.createEmpty()
  const { token, email, orderId, position } = await fill(source)

  const { code, stdout, stderr } = await move(source, target)
  assert.equal(code, 0, stderr)
  assert.match(stdout, /^payments\t2$/m)
  await using before = await serve(source)
  await using after = await serve(target)
  const both = async (ask: (app: Served) => Promise<RawResponse>) => {
    const [expected, found] = await Promise.all([ask(before), ask(after)])
    assert.ok(expected.status < 300, expected.body)
    const shown = ({ status, headers, body }: RawResponse) => [status, headers.get('etag'), headers.get('link'), body]
    assert.deepEqual(shown(found), shown(expected))
  }
  const fresh = await Promise.all([before, after].map(app => logIn(app, email, 'right password')))
  for (const each of [token, ...fresh]) await both(app => send(app, 'GET /users/me', undefined, each))
  const order = `/orders/${orderId}`
  for (const path of ['/users/2', '/users/2/orders', '/payments/1', order, `${order}/items`, `${order}/tracking`])
    await both(app => send(app, `GET ${path}`, undefined, token))
  const posts = `{ posts(limit: 10) { id title content likes publishedAt updatedAt commentCount author { id name }
                   comments(limit: 5) { id text createdAt updatedAt author { id } } } }`
  await both(app => query(app, posts))
  // Payments repeat by their keys, and a key belongs to its caller.
  await both(app => pay(app, 'one', { amount: 12.5 }, token))
  await both(app => payOrder(app, orderId, 'two', token))
  // Subscribers go on where they were.
  const resume = async (app: Served) => {
    using socket = await SocketClient.connect(app)
    const options = { extensions: { after: position } }
    const fields = ['postAdded { id title }', 'postUpdated { id title updatedAt }', 'postDeleted']
    const all = fields.map((field, at) =>
      socket.begin(`subscription { ${field} }`, undefined, options).received(at === 0 ? 2 : 1),
    )
    return await Promise.all(all)
  }
  assert.deepEqual(await resume(after), await resume(before))
  // New rows get the ids that they would have had, also where the last row was deleted.
  const id = (app: Served, mutation: string) => read(app, `mutation { ${mutation} { id } }`, { token })
  for (const mutation of ['createPost(title: "t", content: "c")', 'addComment(postId: 1, text: "t")'])
    assert.deepEqual(await id(after, mutation), await id(before, mutation))
  await both(app => query(app, '{ posts { id commentCount } }'))
  const idOf = async (created: Promise<{ readonly id: number }>) => (await created).id
  assert.equal(await idOf(createUser(after)), await idOf(createUser(before)))
  const orders = [before, after].map(app => idOf(createOrder(app, 2, [{ name: 'x', quantity: 1, price: 3 }], token)))
  assert.equal(await orders[1], await orders[0])
  const paid = await Promise.all([before, after].map(app => pay(app, 'three', { amount: 1 }, token)))
  assert.equal(JSON.parse(paid[1]?.body ?? '').id, JSON.parse(paid[0]?.body ?? '').id)
})

/** Writes something of everything, and deletes the last of some. */
async function fill(source: TestDatabase) {
  await using app = await serve(source)
  await createMember(app)
  const member = await createMember(app)
  const { token, id } = member
  const profile = { name: 'Zoë "Ω" O\'Neil', age: 44, avatar: 'https://example.com/é.png' }
  await send(app, `PATCH /users/${id}`, profile, token)
  using socket = await SocketClient.connect(app)
  const events = socket.begin('subscription { postAdded { id } }', undefined, { extensions: { positions: true } })
  const create = 'mutation ($text: String!) { createPost(title: "Odd 😀", content: $text) { id } }'
  const post = async (text: string) =>
    String(Object((await read(app, create, { token, variables: { text } })).createPost).id)
  await events.listening(post)
  await read(app, `mutation { updatePost(id: ${await post(odd)}, title: "Changed") { id } }`, { token })
  await post('x'.repeat(65_536))
  await read(app, `mutation { deletePost(id: ${await post('deleted')}) }`, { token })
  const comment = 'mutation ($text: String!) { addComment(postId: 1, text: $text) { id } }'
  const commented = await read<{ addComment: { id: string } }>(app, comment, { token, variables: { text: odd } })
  await read(app, `mutation { updateComment(id: ${commented.addComment.id}, text: "Changed") { id } }`, { token })
  const order = await createOrder(app, id, [{ name: odd.slice(0, 12), quantity: 2, price: 7 }], token)
  await pay(app, 'one', { amount: 12.5 }, token)
  await payOrder(app, order.id, 'two', token)
  const unpaid = await createOrder(app, id, undefined, token)
  await send(app, `DELETE /orders/${unpaid.id}`, undefined, token)
  return { ...member, orderId: order.id, position: events.positions[0] }
}

describe('moving a database', { skip }, () => {
  const moveHere = (source: TestDatabase, target: TestDatabase) => moveToPostgres(source.location, target.location)

  it('moves every table, with as many rows, also many', async t => {
    await using source = await sqlite.create()
    await using target = await postgres.createEmpty()
    const rows = inForm(2_500, 1_000_000)
    await fillWith(source, rows)
    const started = performance.now()
    const moved = await moveHere(source, target)
    t.diagnostic(`${3 * rows} rows took ${Math.round((performance.now() - started) / 1000)} s`)
    await using from = source.open(catalogue)
    await using to = target.open(catalogue)
    for (const table of await tablesOf(from)) {
      const count = { text: `select count(*) from ${table}`, values: [] }
      const expected = [[moved.get(table)]]
      assert.deepEqual([await from.read(count), await to.read(count)], [expected, expected], table)
    }
    // Positions go on after those of events that are purged, for clients that have them.
    assert.deepEqual(await to.read(sql`select position from event_head`), [[rows]])
  })

  it('refuses a source that is served, and one of another version', async () => {
    await using source = await sqlite.create()
    await using target = await postgres.createEmpty()
    {
      await using _app = await serve(source)
      await assert.rejects(moveHere(source, target), /^Error: Another server is using /)
    }
    await execute(source, 'delete from schema_migrations where version > 1')
    await assert.rejects(moveHere(source, target), /of another version; run `duet migrate` first/)
  })

  it('refuses a target with rows or of others, and leaves it as it is', async () => {
    await using source = await sqlite.create()
    await using used = await postgres.create()
    await execute(used, "insert into payments (amount_cents, created_at) values (1, '2026-01-31T00:00:00.000Z')")
    await assert.rejects(moveHere(source, used), /the database is not empty, it has payments; nothing was changed/)
    await using foreign = await postgres.createEmpty()
    await execute(foreign, 'create table letters (text text)')
    await assert.rejects(moveHere(source, foreign), /the database is not empty, it has letters; nothing was changed/)
    await using engine = foreign.open(catalogue)
    assert.deepEqual(await tablesOf(engine), ['letters'])
  })

  it('moves nothing if one row cannot be stored', async () => {
    await using source = await sqlite.create()
    await using target = await postgres.createEmpty()
    await fillWith(source, 1_500)
    await execute(source, "update posts set content = 'a' || char(0) where id = 1400")
    await assert.rejects(moveHere(source, target), /^AppError: --to: /)
    await execute(source, "update posts set content = 'a' where id = 1400")
    assert.equal((await moveHere(source, target)).get('posts'), 1_500)
  })
})

async function fillWith({ location }: TestDatabase, rows: number): Promise<void> {
  using database = new DatabaseSync(location)
  const numbers = `with recursive numbers (n) as (values (1) union all select n + 1 from numbers where n < ${rows})`
  const at = "'2026-01-31T00:00:00.000Z'"
  database.exec(`
    begin;
    ${numbers} insert into users (id, name, email, email_key, token_mark, created_at)
      select n, 'Ann', n || '@example.com', n || '@example.com', 'mark', ${at} from numbers;
    ${numbers} insert into posts (author_id, title, content, published_at)
      select n, 'Title', 'Some words of content', ${at} from numbers;
    ${numbers} insert into comments (post_id, author_id, text, created_at) select n, n, 'Well said', ${at} from numbers;
    ${numbers} insert into outbox (kind, post_id, created_at) select 'post-added', n, ${at} from numbers;
    delete from outbox;
    update counters set next = ${rows + 1};
    commit`)
}
