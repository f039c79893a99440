import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { DuetError, type Live, type Watcher } from '../../client/src/index.ts'
import { follow, reader } from '../../console/src/state/follow.ts'

test('a read serves all who ask at once, is repeated for those who ask while it runs, and tells why it failed', async () => {
  let reads = 0
  let next = Promise.withResolvers<void>()
  const settled = () => new Promise(resolve => setImmediate(resolve))
  const posts = reader(async () => {
    reads++
    await next.promise
  })
  for (let count = 0; count < 3; count++) posts.run()
  await settled()
  assert.deepEqual([reads, posts.busy.value], [1, true])
  for (let count = 0; count < 3; count++) posts.run()
  const first = next
  next = Promise.withResolvers()
  first.resolve()
  await settled()
  assert.deepEqual([reads, posts.busy.value], [2, true])
  posts.run()
  const second = next
  next = Promise.withResolvers()
  second.reject(new DuetError('rateLimited', 'Too many', { retryAfter: 5 }))
  await settled()
  assert.deepEqual([reads, posts.busy.value, posts.problem.value?.kind], [3, true, 'rate-limited'])
  next.reject(new DuetError('offline', 'No answer'))
  await settled()
  assert.deepEqual([reads, posts.busy.value, posts.problem.value?.kind], [3, false, 'offline'])
  next = Promise.withResolvers()
  next.resolve()
  posts.run()
  await settled()
  assert.deepEqual([reads, posts.problem.value], [4, undefined])
})

test('what is followed is read when events arrive or after a second, and followed again after an error, with longer and longer pauses', t => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const begun: { watcher: Watcher<never>; closed: boolean }[] = []
  const live = {
    subscribe(_document: string, _variables: unknown, watcher: Watcher<never>) {
      const one = { watcher, closed: false }
      begun.push(one)
      return {
        position: undefined,
        close: () => {
          one.closed = true
        },
      }
    },
  } as unknown as Live
  let reads = 0
  let ends = 0
  const source = { document: 'subscription { postAdded { id } }', onData: () => {}, onEnd: () => ends++ }
  const start = () => follow(live, [source], () => reads++)
  const stop = start()
  begun[0]?.watcher.onReadAnew?.('start')
  mock.timers.tick(1000)
  assert.equal(reads, 1, 'it is not read twice')

  const failed = new DuetError('badInput', 'Too far behind', { code: 'SUBSCRIPTION_TOO_EXPENSIVE' })
  for (const pause of [2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]) {
    const before = begun.length
    begun.at(-1)?.watcher.onError?.(failed)
    mock.timers.tick(pause - 1)
    assert.equal(begun.length, before)
    mock.timers.tick(1)
    assert.equal(begun.length, before + 1)
  }
  begun.at(-1)?.watcher.onReadAnew?.('start')
  assert.equal(reads, 2)
  begun.at(-1)?.watcher.onError?.(failed)
  mock.timers.tick(2000)
  assert.equal(begun.length, 9, 'after a success the pauses are short again')
  begun.at(-1)?.watcher.onError?.(new DuetError('notFound', 'Post not found'))
  mock.timers.tick(60_000)
  assert.deepEqual([ends, begun.length], [1, 9], 'what is gone is not followed again')
  begun.at(-1)?.watcher.onEnd?.()
  assert.equal(ends, 2)
  stop()

  const leave = start()
  mock.timers.tick(1000)
  assert.equal(reads, 3, 'without a socket it is read all the same')
  begun.at(-1)?.watcher.onError?.(failed)
  leave()
  mock.timers.tick(60_000)
  assert.equal(begun.length, 10)
  const known = start()
  known()
  mock.timers.tick(60_000)
  assert.deepEqual([begun.at(-1)?.closed, reads], [true, 3])
})
