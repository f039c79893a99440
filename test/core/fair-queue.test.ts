import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AppError } from '../../src/core/errors.ts'
import { FairQueue } from '../../src/core/fair-queue.ts'
import { runs } from '../support/form.ts'

/** A queue whose tasks end when the test ends them. Records the started and the rejected clients, in order. */
function watched(atOnce: number, mayWait: number, perClient = atOnce) {
  const queue = new FairQueue({ atOnce, mayWait, perClient })
  const entered: string[] = []
  const refused: string[] = []
  const running: (() => void)[] = []
  const ask = (client: string) => {
    const work = () => {
      entered.push(client)
      const { promise, resolve } = Promise.withResolvers<void>()
      running.push(resolve)
      return promise
    }
    queue.run(client, work).catch((error: unknown) => {
      assert.ok(error instanceof AppError && error.code === 'unavailable')
      refused.push(client)
    })
  }
  const settle = () => new Promise(resolve => setImmediate(resolve))
  const end = async () => {
    running.shift()?.()
    await settle()
  }
  return { ask, end, settle, entered, refused, running }
}

test('clients take turns, and the tasks of each client run in order', async () => {
  const { ask, end, entered, running } = watched(1, 10)
  for (const client of ['a', 'a', 'a', 'a', 'b', 'c', 'b']) ask(client)
  while (running.length > 0) await end()
  assert.deepEqual(entered, ['a', 'a', 'b', 'c', 'a', 'b', 'a'])
})

test('a client with a running task waits behind a client whose task came before its second task', async () => {
  const { ask, end, entered, running } = watched(1, 10)
  for (const client of ['a', 'b', 'a']) ask(client)
  while (running.length > 0) await end()
  assert.deepEqual(entered, ['a', 'b', 'a'])
})

test('one client never has more running tasks than its limit, and its waiting tasks block no other client', async () => {
  const { ask, end, entered, running } = watched(3, 10, 1)
  for (const client of ['a', 'a', 'b']) ask(client)
  assert.deepEqual(entered, ['a', 'b'])
  await end()
  assert.deepEqual(entered, ['a', 'b', 'a'])
  while (running.length > 0) await end()
})

test('when too many tasks wait, the newest task of the client with the most waiting tasks is rejected', async () => {
  const { ask, end, settle, entered, refused, running } = watched(1, 4)
  for (const client of ['a', 'a', 'a', 'a', 'a']) ask(client)
  ask('a')
  await settle()
  assert.deepEqual(refused, ['a'], 'the newest task of a lone client is rejected')
  ask('b')
  ask('b')
  await settle()
  assert.deepEqual(refused, ['a', 'a', 'a'])
  ask('b')
  await settle()
  assert.deepEqual(refused, ['a', 'a', 'a', 'b'], 'with equal lanes, the newcomer is rejected')
  while (running.length > 0) await end()
  assert.deepEqual(entered, ['a', 'a', 'b', 'a', 'b'])
})

test('a task that fails frees its place, and its caller gets the error', async () => {
  const queue = new FairQueue({ atOnce: 1, mayWait: 0 })
  for (let times = 0; times < 3; times++) {
    await assert.rejects(
      queue.run('a', () => Promise.reject(new Error('broken'))),
      /broken/,
    )
  }
  assert.equal(await queue.run('b', async () => 'done'), 'done')
})

test('the limits on running and waiting tasks always hold, and every task runs or is rejected', async () => {
  const steps = fc.array(fc.constantFrom('a', 'b', 'c', 'end'), { maxLength: 60 })
  const bounds = fc.record({ atOnce: fc.integer({ min: 1, max: 3 }), mayWait: fc.nat(5) })
  await fc.assert(
    fc.asyncProperty(bounds, steps, async ({ atOnce, mayWait }, all) => {
      const { ask, end, settle, entered, refused, running } = watched(atOnce, mayWait)
      let asked = 0
      for (const step of all) {
        if (step === 'end') await end()
        else {
          asked++
          ask(step)
          await settle()
        }
        assert.ok(running.length <= atOnce)
        const waiting = asked - entered.length - refused.length
        assert.ok(waiting >= 0 && waiting <= mayWait)
        if (waiting > 0) assert.equal(running.length, atOnce, 'no task waits while a slot is free')
      }
      while (running.length > 0) await end()
      assert.equal(entered.length + refused.length, asked)
    }),
    { numRuns: runs(500, 500) },
  )
})

test('the queue keeps nothing about a client whose tasks are all done or rejected', async () => {
  const queue = new FairQueue({ atOnce: 1, mayWait: 1 })
  const { promise, resolve } = Promise.withResolvers<void>()
  const accepted = [queue.run('a', () => promise), queue.run('b', async () => {})]
  for (let n = 0; n < 10; n++) await assert.rejects(queue.run(`newcomer ${n}`, async () => {}))
  assert.equal(queue.clients, 2)
  resolve()
  await Promise.all(accepted)
  await new Promise(done => setImmediate(done))
  assert.equal(queue.clients, 0)
})
