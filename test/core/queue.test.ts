import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Queue } from '../../src/core/queue.ts'

test('a queue runs a few tasks at once, the others in their order, also after one that failed, and refuses what is too many', async () => {
  const queue = new Queue({ atOnce: 2, mayWait: 2 })
  const tasks = new Map<string, PromiseWithResolvers<void>>()
  const run = (name: string) =>
    queue.run(() => {
      tasks.set(name, Promise.withResolvers())
      return tasks.get(name)?.promise ?? assert.fail()
    })
  const outcomes = ['a', 'b', 'c', 'd'].map(run)
  await assert.rejects(run('e'), { code: 'unavailable' })
  assert.deepEqual([...tasks.keys()], ['a', 'b'])
  tasks.get('b')?.reject(new Error('failed'))
  await assert.rejects(outcomes[1] ?? assert.fail(), /failed/)
  assert.deepEqual([...tasks.keys()], ['a', 'b', 'c'])
  tasks.get('a')?.resolve()
  await outcomes[0]
  assert.deepEqual([...tasks.keys()], ['a', 'b', 'c', 'd'])
  for (const name of ['c', 'd']) tasks.get(name)?.resolve()
  await Promise.all(outcomes.slice(2))
  const later = run('f') // a place is free again
  tasks.get('f')?.resolve()
  await later
})

test('a shared task runs once for all who ask before it begins, and again for whoever asks later', async () => {
  const queue = new Queue({ atOnce: 1 })
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
  const begun: number[] = []
  const share = () =>
    queue.share('name', async () => {
      const number = begun.push(begun.length)
      await gates[1].promise
      return number
    })
  const first = queue.run(() => gates[0].promise)
  const early = [share(), share()]
  gates[0].resolve()
  await first
  assert.deepEqual(begun, [0])
  const late = share()
  gates[1].resolve()
  assert.deepEqual(await Promise.all([...early, late]), [1, 1, 2])
})
