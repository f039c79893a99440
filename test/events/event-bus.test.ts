import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { Feed } from '../../src/events/feed.ts'
import { MemoryEventBus, ThreadEventBus } from '../../src/events/memory-event-bus.ts'
import { PostgresEventBus } from '../../src/events/postgres-event-bus.ts'
import { loggedSecret } from '../mail/mail-server.ts'
import { connectTo } from '../storage/transaction.ts'
import { newPost } from '../subscriptions/posts.ts'
import { startTestAppOn } from '../support/app.ts'
import { postgres, sqlite } from '../support/engines.ts'
import { createMember, logIn, send } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'
import { newPostgresDatabase } from '../support/templates.ts'
import { assertSoon, waitUntil } from '../support/wait.ts'

const postgresBus = (url: string, warnings: string[] = []) =>
  new PostgresEventBus({ url, randomness: { id: randomUUID }, warn: message => warnings.push(message) })

/** Counts what a bus tells, and how often it told of events that were written here. */
function heard(bus: MemoryEventBus) {
  const counter = { times: 0, writtenHere: 0 }
  bus.listen(writtenHere => {
    counter.times++
    if (writtenHere) counter.writtenHere++
  })
  return counter
}

describe('Every event bus', () => {
  const buses = {
    'in memory': async () => [new MemoryEventBus(), new MemoryEventBus()] as const,
    'of threads': async () => {
      const name = randomUUID()
      return [new ThreadEventBus(name), new ThreadEventBus(name)] as const
    },
    'on PostgreSQL': async (parts: AsyncDisposableStack) => {
      const url = await newPostgresDatabase('nothing')
      const both = [parts.use(postgresBus(url)), parts.use(postgresBus(url))] as const
      await waitUntil(() => both.every(({ listening }) => listening))
      return both
    },
  }
  for (const [name, open] of Object.entries(buses)) {
    const skip = name === 'on PostgreSQL' && postgres.skip
    it(`tells its own thread at once what was written here, and others only what is announced, together if at the same moment, ${name}`, {
      skip,
    }, async () => {
      await using parts = new AsyncDisposableStack()
      const [one, other] = await open(parts)
      const [mine, theirs] = [heard(one), heard(other)]
      one.notify()
      assert.deepEqual(mine, { times: 1, writtenHere: 1 })
      other.announce() // the first takes long
      for (let n = 0; n < 10; n++) one.announce()
      // The first of them, and one for all that follow.
      const [fromOther, fromOne] = name === 'in memory' ? [0, 0] : [1, 2]
      await assertSoon(() => mine.times > fromOther && theirs.times >= fromOne)
      await delay(20) // longer than the pause between two messages
      assert.deepEqual(mine, { times: 1 + fromOther, writtenHere: 1 })
      assert.deepEqual(theirs, { times: fromOne, writtenHere: 0 })
    })
  }

  it('tells a thread of every announcement, also of one right after that of another thread', async () => {
    const name = randomUUID()
    const [one, other, third] = [new ThreadEventBus(name), new ThreadEventBus(name), new ThreadEventBus(name)]
    const theirs = heard(third)
    third.listen(() => theirs.times === 1 && other.announce())
    one.announce()
    await assertSoon(() => theirs.times === 2)
  })
})

describe('The event bus on PostgreSQL', { skip: postgres.skip }, () => {
  it('opens a new connection whenever its connection is lost, says so, and then notifies its listeners', async () => {
    const url = await newPostgresDatabase('nothing')
    const warnings: string[] = []
    await using one = postgresBus(url, warnings)
    await using other = postgresBus(url)
    await waitUntil(() => one.listening && other.listening)
    const mine = heard(one)
    await using admin = await connectTo(url)
    for (let losses = 0; losses < 2; losses++) {
      const known = mine.times
      await admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where application_name = 'duet events' and datname = current_database()`,
      )
      await waitUntil(() => !one.listening || mine.times > known)
      await waitUntil(() => one.listening && other.listening)
      assert.ok(mine.times > known, 'told at once, not only by the next announcement: some may have been missed')
      const before = mine.times
      other.announce()
      await waitUntil(() => mine.times > before)
    }
    for (const warning of ['was lost', 'arrive again'])
      assert.equal(warnings.filter(message => message.includes(warning)).length, 2, warning)
  })

  it('sends notifications again after one that it could not send, and closes a connection without an answer', async t => {
    const url = await newPostgresDatabase('nothing')
    await using one = postgresBus(url)
    one.announce() // before it has a connection
    await using other = postgresBus(url)
    await waitUntil(() => one.listening && other.listening)
    const theirs = heard(other)
    for (let tries = 0; theirs.times === 0 && tries < 100; tries++) {
      one.announce()
      await delay(20) // longer than the pause between two notifications
    }
    assert.ok(theirs.times > 0)
    const { mock } = t.mock.method(pg.Client.prototype, 'end')
    t.mock.method(pg.Client.prototype, 'query', () => Promise.reject(new Error('Query read timeout')), { times: 1 })
    for (; !mock.callCount() && theirs.times < 9; await delay(20)) one.announce()
    assert.ok(mock.callCount() > 0)
  })

  it('stops at once while PostgreSQL is unreachable, and its warning contains no user name and no address', async () => {
    const warnings: string[] = []
    await using bus = postgresBus('postgres://secret-name:secret-word@127.0.0.1:9/nowhere', warnings)
    const mine = heard(bus)
    await waitUntil(() => warnings.length > 0)
    bus.announce()
    bus.notify()
    assert.equal(mine.times, 1)
    assert.doesNotMatch(warnings.join(), /secret|127\.0/)
  })
})

/** Records for each notification of the bus: whether the feed read at once, and the newest visible event. */
function watchTheBus(t: TestContext, newestEvent: () => unknown) {
  const notifications: { readonly looks: number; readonly newest: unknown }[] = []
  const { notify } = MemoryEventBus.prototype
  const look = t.mock.method(Feed.prototype, 'look')
  t.mock.method(MemoryEventBus.prototype, 'notify', function (this: MemoryEventBus) {
    const before = look.mock.callCount()
    notify.call(this)
    notifications.push({ looks: look.mock.callCount() - before, newest: newestEvent() })
  })
  return notifications
}

// The feed also reads once a second, so a change without a notification is delivered too, only later.
it('every change with an event notifies the feed, after its commit and before its answer', async t => {
  const env = { THREADS: '1', RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }
  await using app = await startTestAppOn(sqlite, env, { mailEveryMs: 5 })
  using database = new DatabaseSync(app.database.location, { readOnly: true })
  const newest = database.prepare('select kind, coalesce(user_id, post_id) about from outbox order by id desc limit 1')
  const notifications = watchTheBus(t, () => Object.values(newest.get() ?? {}).join(' '))
  const ann = await createMember(app)
  const bob = await createMember(app)
  const chief = await createMember(app)
  await app.engine.write('setRole', chief, 'admin', 'another version')
  assert.deepEqual({ ...newest.get() }, { kind: 'user-revoked', about: chief.id })
  const token = await logIn(app, chief.email, 'right password')
  using writer = await SocketClient.connect(app, ann)
  const post = await newPost(writer)
  assert.deepEqual(notifications.splice(0), [{ looks: 1, newest: `post-added ${post}` }], 'createPost')

  const mutate = (field: string) => () => writer.read(`mutation { ${field} }`)
  const password = 'another password'
  const { id, name, email } = bob
  const reset = async () => {
    await send(app, 'POST /password-resets', { email })
    return send(app, `PUT /password-resets/${await loggedSecret(app.logs, email)}`, { password })
  }
  const changes: readonly (readonly [what: string, event: string, change: () => Promise<unknown>])[] = [
    ['addComment', `comment-added ${post}`, mutate(`addComment(postId: ${post}, text: "T") { id }`)],
    ['deletePost', `post-deleted ${post}`, mutate(`deletePost(id: ${post})`)],
    ['PUT', `user-revoked ${id}`, () => send(app, `PUT /users/${id}`, { name, email, password }, bob.token)],
    ['PATCH', `user-revoked ${ann.id}`, () => send(app, `PATCH /users/${ann.id}`, { password }, ann.token)],
    ['a role', `user-revoked ${id}`, () => send(app, `PUT /users/${id}/role`, { role: 'admin' }, token)],
    ['DELETE /tokens', `user-revoked ${chief.id}`, () => send(app, 'DELETE /tokens', undefined, token)],
    ['a reset', `user-revoked ${id}`, reset],
    ['DELETE', `user-revoked ${ann.id}`, () => send(app, `DELETE /users/${ann.id}`)],
  ]
  for (const [what, event, change] of changes) {
    await change()
    assert.deepEqual(notifications.splice(0), [{ looks: 1, newest: event }], what)
  }
})
