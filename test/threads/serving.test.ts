import assert from 'node:assert/strict'
import { test } from 'node:test'
import { orLast, Serving } from '../../src/threads/serving.ts'
import type { ServingData } from '../../src/threads/serving-thread.ts'
import { within } from '../support/wait.ts'

test('a thread that is late with its metrics is counted with what it told last', async () => {
  const late = () => new Promise<never>(() => {})
  const ended = () => Promise.reject(new Error('ended'))
  const answers: (() => Promise<number>)[] = [late, async () => 7, late, ended, async () => 9]
  const metrics = orLast(() => (answers.shift() ?? late)(), 1)
  const told: (number | undefined)[] = []
  for (let times = 0; times < 5; times++) told.push(await metrics())
  assert.deepEqual(told, [undefined, 7, 7, 7, 9])
})

test('calls to a thread that ends without an answer are rejected, and so are later ones', async () => {
  const errors: unknown[] = []
  const data = {} as ServingData // without settings the thread fails while it loads
  const thread = new Serving(
    data,
    {},
    () => {},
    error => errors.push(error),
  )
  for (let times = 0; times < 2; times++)
    await assert.rejects(within(thread.call('reloadKeys'), 'an error'), /The other thread has ended/)
  assert.equal(errors.length, 1)
})
