import assert from 'node:assert/strict'
import { test } from 'node:test'
import { orLast } from '../../src/threads/serving.ts'

test('a thread that is late with its metrics is counted with what it told last', async () => {
  const late = () => new Promise<never>(() => {})
  const ended = () => Promise.reject(new Error('ended'))
  const answers: (() => Promise<number>)[] = [late, async () => 7, late, ended, async () => 9]
  const metrics = orLast(() => (answers.shift() ?? late)(), 1)
  const told: (number | undefined)[] = []
  for (let times = 0; times < 5; times++) told.push(await metrics())
  assert.deepEqual(told, [undefined, 7, 7, 7, 9])
})
