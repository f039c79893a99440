import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { Feed } from '../../src/events/feed.ts'
import { MemoryEventBus } from '../../src/events/memory-event-bus.ts'
import { startTestAppOn } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { createMember, send } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'
import { newPost } from './posts.ts'

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
test('every change with an event notifies the feed, after its commit and before its answer', async t => {
  await using app = await startTestAppOn(sqlite, { THREADS: '1', RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' })
  using database = new DatabaseSync(app.database.location, { readOnly: true })
  const newest = database.prepare('select kind, coalesce(user_id, post_id) about from outbox order by id desc limit 1')
  const notifications = watchTheBus(t, () => Object.values(newest.get() ?? {}).join(' '))
  const ann = await createMember(app)
  const bob = await createMember(app)
  using writer = await SocketClient.connect(app, ann)
  const post = await newPost(writer)
  assert.deepEqual(notifications.splice(0), [{ looks: 1, newest: `post-added ${post}` }], 'createPost')

  const password = 'another password'
  const { name, email } = bob
  const changes: readonly (readonly [what: string, event: string, change: () => Promise<unknown>])[] = [
    [
      'addComment',
      `comment-added ${post}`,
      () => writer.read(`mutation { addComment(postId: ${post}, text: "T") { id } }`),
    ],
    ['deletePost', `post-deleted ${post}`, () => writer.read(`mutation { deletePost(id: ${post}) }`)],
    ['PATCH', `user-revoked ${ann.id}`, () => send(app, `PATCH /users/${ann.id}`, { password }, ann.token)],
    ['PUT', `user-revoked ${bob.id}`, () => send(app, `PUT /users/${bob.id}`, { name, email, password }, bob.token)],
    ['DELETE', `user-revoked ${ann.id}`, () => send(app, `DELETE /users/${ann.id}`)],
  ]
  for (const [what, event, change] of changes) {
    await change()
    assert.deepEqual(notifications.splice(0), [{ looks: 1, newest: event }], what)
  }
})
