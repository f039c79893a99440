import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type pg from 'pg'
import { anonymous, type IdentifiedUser } from '../../src/core/actor.ts'
import type { UserValues } from '../../src/core/store.ts'
import { profileOf, type User } from '../../src/core/users/user.ts'
import { userVerbs } from '../../src/storage/entities/users.ts'
import { type Row, sql } from '../../src/storage/sql.ts'
import type { Rollback, Steps } from '../../src/storage/verb.ts'
import { verbs } from '../../src/storage/verbs.ts'
import { execute } from '../faults/execute.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds, postgres } from '../support/engines.ts'
import { assertRefused, query, read } from '../support/graphql.ts'
import { createMember, createUser, send } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { waitUntil } from '../support/wait.ts'
import { connectTo, isWaiting, Transaction } from './transaction.ts'

for (const kind of engineKinds) {
  describe(`A user with much content, on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind))

    /** 1,200 posts with 1,200 comments of another user on the first one, and 1,200 comments on a post of the other. */
    async function writer(): Promise<{ readonly id: number; readonly other: number }> {
      const { id } = await createUser(app)
      const { id: other } = await createUser(app)
      await execute(
        app.database,
        `${posts(1, other)}; ${posts(1_200, id)}; ${comments(id, 1_200, other)}; ${comments(other, 1_200, id)}`,
      )
      return { id, other }
    }

    it('is deleted in several steps of at most 200 posts or comments each', async () => {
      const { id } = await writer()
      const { engine } = app
      const counts = () =>
        engine.read(sql`select (select count(*) from posts where author_id = ${id}),
        (select count(*) from comments where author_id = ${id}),
        (select count(*) from comments join posts on posts.id = post_id where posts.author_id = ${id})`)
      const left = async () => (await counts())[0]?.map(Number) ?? []
      let before = await left()
      assert.deepEqual(before, [1_200, 1_200, 1_200])
      let steps = 0
      for (; (await engine.write('deleteUser', id, anonymous)) === 'more'; steps++) {
        const now = await left()
        assert.deepEqual(await engine.read(miscounted), [])
        for (const [at, count] of before.entries()) assert.ok(count - (now[at] ?? 0) <= 200, `${before} to ${now}`)
        assert.notDeepEqual(now, before)
        before = now
      }
      assert.ok(steps >= 6, `${steps} steps`)
      assert.deepEqual(await left(), [0, 0, 0])
    })

    it('leaves payments and orders without a payer, and no idempotency key, of each at most 500 per step', async () => {
      const { id } = await createUser(app)
      const { engine } = app
      const at = '2026-01-01T00:00:00.000Z'
      await execute(
        app.database,
        `insert into payments (amount_cents, payer_id, created_at) ${numbers(501)} select 1, ${id}, '${at}' from n;
         insert into orders (amount_cents, user_id, created_at) ${numbers(501)} select 100, ${id}, '${at}' from n;
         insert into idempotency_keys (caller_id, scope, key, payment_id, expires_at)
           ${numbers(501)} select ${id}, '/payments', 'key ' || i, (select min(id) from payments), '${at}' from n`,
      )
      const of = (table: string, column: string) => `(select count(*) from ${table} where ${column} = ${id})`
      const text = `select ${of('idempotency_keys', 'caller_id')}, ${of('payments', 'payer_id')}, ${of('orders', 'user_id')}`
      const steps: unknown[] = []
      for (let outcome = 'more'; outcome === 'more'; ) {
        outcome = String(await engine.write('deleteUser', id, anonymous))
        steps.push((await engine.read({ text, values: [] }))[0]?.map(Number))
      }
      assert.deepEqual(steps, [
        [1, 501, 501],
        [0, 1, 501],
        [0, 0, 1],
        [0, 0, 0],
      ])
    })

    it('is deleted completely when DELETE is answered, and each post and comment on others gets one deletion event', async () => {
      const { id, other } = await writer()
      await execute(app.database, comments(id, 5, id))
      const { engine } = app
      const [first] = await engine.read(sql`select max(id) - 1200 from posts`)
      const before = Number(first?.[0])
      assert.equal((await send(app, `DELETE /users/${id}`)).status, 204)
      assert.equal((await send(app, `GET /users/${id}`)).status, 404)
      const [row] = await engine.read(sql`select (select count(*) from posts where author_id = ${id}),
        (select count(*) from comments where author_id in (${id}, ${other})),
        (select count(*) from outbox where kind = 'post-deleted' and post_id > ${before}),
        (select count(distinct post_id) from outbox where kind = 'post-deleted' and post_id > ${before}),
        (select count(*) from outbox where kind = 'comment-deleted' and post_id >= ${before}),
        (select count(distinct comment_id) from outbox where kind = 'comment-deleted' and post_id >= ${before}),
        (select count(*) from posts where author_id = ${other}),
        (select count(*) from outbox where kind = 'user-revoked' and user_id = ${id})`)
      assert.deepEqual(row?.map(Number), [0, 0, 1_200, 1_200, 1_200, 1_200, 1, 1])
    })
  })

  describe(`A post with more than 200 comments, on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind, { RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }))

    /** Two posts. The first one has so many comments. */
    async function author(count: number) {
      const { id, token } = await createMember(app)
      await execute(app.database, `${posts(2, id)}; ${comments(id, count, id)}`)
      const [ids = []] = await app.engine.read(sql`select min(id), max(id) from posts where author_id = ${id}`)
      const [post = 0, other = 0] = ids.map(Number)
      const left = async () => {
        const [row] = await app.engine.read(sql`select (select comment_count from posts where id = ${post}),
          (select count(*) from comments where post_id = ${post}),
          (select count(*) from outbox where kind = 'post-deleted' and post_id = ${post})`)
        return row?.map(count => (count === null ? 'none' : Number(count)))
      }
      return { token, post, other, left }
    }

    it('is deleted in steps of 200 comments, and its event is told at the end', async () => {
      const { post, left } = await author(401)
      const change = { kind: 'delete a post', id: post, reach: 'everyone' } as const
      for (const rest of [201, 1]) {
        assert.equal(await app.engine.write('changePosts', anonymous, [change]), 'more')
        assert.deepEqual(await left(), [rest, rest, 0])
      }
      assert.deepEqual(await app.engine.write('changePosts', anonymous, [change]), [true])
      assert.deepEqual(await left(), ['none', 0, 1])
    })

    it('is gone when its deletion is answered, and is not deleted together with other changes, such as its last comment', async () => {
      const { token, post, other, left } = await author(200)
      const comment = `addComment(postId: ${post}, text: "the one too many") { id }`
      for (const first of [`deletePost(id: ${other})`, comment]) {
        const both = `mutation { one: ${first} two: deletePost(id: ${post}) }`
        assertRefused(await query(app, both, { token }), 400, 'BAD_USER_INPUT')
      }
      await read(app, `mutation { ${comment} }`, { token })
      assert.deepEqual(await left(), [201, 201, 0])
      const alone = (id: number) => read<{ deletePost: boolean }>(app, `mutation { deletePost(id: ${id}) }`, { token })
      assert.deepEqual([await alone(post), await alone(other)], [{ deletePost: true }, { deletePost: true }])
      assert.deepEqual(await left(), ['none', 0, 1])
    })
  })
}

const miscounted = sql`select id from posts
                       where comment_count <> (select count(*) from comments where post_id = posts.id)`

const numbers = (count: number) =>
  `with recursive n(i) as (select 0 union all select i + 1 from n where i < ${count - 1})`

function posts(count: number, author: number): string {
  return `insert into posts (author_id, title, content, published_at)
    ${numbers(count)} select ${author}, 'Title', 'Content', '2026-01-01T00:00:00.000Z' from n`
}

function comments(owner: number, count: number, author: number): string {
  return `insert into comments (post_id, author_id, text, created_at) ${numbers(count)}
    select (select min(id) from posts where author_id = ${owner}), ${author}, 'Text', '2026-01-01T00:00:00.000Z' from n`
}

describe('A post that is created while its author is deleted, on PostgreSQL', { skip: postgres.skip }, () => {
  it('gets a deletion event if its transaction ends while the deletion waits for it', async () => {
    await using database = await postgres.create()
    await using deleting = await connectTo(database.location)
    await using creating = await connectTo(database.location)
    const author = await createAuthor(creating)
    const creation = await Transaction.begin(creating, createPost(author))
    const postId = idOf(await creation.finish())
    const deletion = Transaction.run(deleting, verbs.deleteUser(author.id, anonymous))
    await waitUntil(() => isWaiting(deleting, creating))
    await creating.query('commit')
    assert.equal(await deletion, 'gone')
    assert.deepEqual(await eventsOf(creating, postId), ['post-added', 'post-deleted'])
  })

  it('gets a deletion event or is refused, after each statement of the deletion', async () => {
    await using database = await postgres.create()
    await using deleting = await connectTo(database.location)
    await using creating = await connectTo(database.location)
    await creating.query("set lock_timeout = '100ms'")
    const fates: string[] = []
    for (let statements = 0, end: object | undefined; end === undefined; statements++) {
      const author = await createAuthor(creating)
      const deletion = await Transaction.begin(deleting, verbs.deleteUser(author.id, anonymous))
      end = await deletion.advance(statements)
      const postId = await createUnlessLocked(creating, author)
      if (end === undefined) await deletion.finish()
      await deleting.query('commit')
      fates.push(postId === undefined ? 'refused' : (await eventsOf(creating, postId)).join(', '))
    }
    const announced = 'post-added, post-deleted'
    assert.equal(fates[0], announced, 'before the first statement')
    assert.equal(fates.at(-1), 'refused', 'after the last statement')
    assert.deepEqual([...new Set(fates)].sort(), [announced, 'refused'])
  })
})

async function createAuthor(client: pg.Client): Promise<IdentifiedUser> {
  const values = somebody()
  const id = idIn(await Transaction.run(client, verbs.createUser(values)))
  return { kind: 'user', id, role: 'member', tokenVersion: values.tokenVersion }
}

function createPost(author: IdentifiedUser) {
  const show = { text: 'select cast($1 as text)', values: [null], id: 0 } as const
  return verbs.changePosts(author, [{ kind: 'create a post', title: 'Title', content: 'Content', show }])
}

/** The id of the post, or nothing if the time for a lock is over. */
function createUnlessLocked(client: pg.Client, author: IdentifiedUser): Promise<number | undefined> {
  const created = Transaction.run(client, createPost(author)).then(idOf)
  return created.catch(error => (error.code === '55P03' ? undefined : Promise.reject(error)))
}

const idOf = (outcome: unknown): number =>
  Array.isArray(outcome) ? Number(outcome[0]) : assert.fail(`not created: ${JSON.stringify(outcome)}`)

async function eventsOf(client: pg.Client, postId: number): Promise<readonly string[]> {
  const { rows } = await client.query('select kind from outbox where post_id = $1 order by id', [postId])
  return rows.map(({ kind }) => kind)
}

/** Creates a user. Another transaction deletes the conflicting user at the moment of the conflict. */
function* createWhileDeleted(values: UserValues, inTheWay: number): Steps<User | string | Rollback<string>> {
  const steps = userVerbs.createUser(values)
  for (let rows: readonly Row[] = []; ; ) {
    const step = steps.next(rows)
    if (step.done) return step.value
    rows = yield step.value
    const refused = step.value.text.includes('insert into users') && rows.length === 0
    if (refused) yield sql`delete from users where id = ${inTheWay}`
  }
}

/** Replaces a user. Others create the same id just before and delete it just after, this many times. */
function* replaceWhileContended(id: number, values: UserValues, times: number): Steps<unknown> {
  const steps = userVerbs.replaceUser(id, values, mayChange)
  let left = times
  for (let rows: readonly Row[] = []; ; ) {
    const step = steps.next(rows)
    if (step.done) return step.value
    const contended = step.value.text.includes('insert into users') && left-- > 0
    if (contended) yield* userVerbs.replaceUser(id, somebody(), mayChange)
    rows = yield step.value
    if (contended) yield sql`delete from users where id = ${id}`
  }
}

const catalogue = { url: import.meta.url, verbs: { ...userVerbs, createWhileDeleted, replaceWhileContended } }
const mayChange = { actor: anonymous, mayChangePassword: true, mayCreate: true }
const largest = 9007199254740991

let people = 0

function somebody(password: UserValues['password'] = null): UserValues {
  return { name: 'A', email: `${++people}@example.com`, ...profileOf(() => null), password, tokenVersion: 'm' }
}

const idIn = (outcome: User | string | Rollback<string>): number =>
  typeof outcome === 'object' && 'id' in outcome ? outcome.id : assert.fail(String(outcome))

describe('Assigned ids while users are deleted, on PostgreSQL', { skip: postgres.skip }, () => {
  const engine = shared(async () => (await postgres.create()).open(catalogue))

  it('a chosen id or a taken e-mail whose user is deleted during the assignment does not make the counter jump', async () => {
    const id = idIn(await engine.write('createUser', somebody()))
    await engine.write('replaceUser', id + 1, somebody(), mayChange)
    assert.equal(idIn(await engine.write('createWhileDeleted', somebody(), id + 1)), id + 2)
    await engine.write('replaceUser', largest, somebody(), mayChange)
    await engine.write('replaceUser', id + 3, somebody(), mayChange)
    assert.equal(idIn(await engine.write('createWhileDeleted', somebody(), id + 3)), id + 4)
    assert.equal(idIn(await engine.write('createUser', somebody())), id + 5)
    const values = somebody({ hash: 'h' })
    assert.equal(idIn(await engine.write('createUser', values)), id + 6)
    await engine.write('replaceUser', largest - 1, somebody(), mayChange)
    assert.equal(idIn(await engine.write('createWhileDeleted', values, id + 6)), id + 8)
    assert.equal(idIn(await engine.write('createUser', somebody())), id + 9)
  })

  it('a PUT succeeds while others repeatedly create and delete the same id', async () => {
    const { tokenVersion, password, ...values } = somebody()
    const outcome = await engine.write('replaceWhileContended', 700, { ...values, tokenVersion, password }, 5)
    assert.deepEqual(outcome, { user: { id: 700, ...values }, created: true })
  })
})
