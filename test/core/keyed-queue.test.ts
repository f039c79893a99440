import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { AppError } from '../../src/core/errors.ts'
import { KeyedQueue } from '../../src/core/keyed-queue.ts'

const later = () => performance.now() + 60_000

/** A queue whose tasks end when the test ends them. */
function watched(atOnce: number) {
  const queue = new KeyedQueue(atOnce)
  const running = new Map<string, () => void>()
  const begin = (name: string, keys: readonly string[], client = 'client', deadline = later()) =>
    queue.run(
      keys,
      client,
      () => new Promise<void>(resolve => running.set(name, resolve)).finally(() => running.delete(name)),
      deadline,
    )
  const end = async (name: string) => {
    running.get(name)?.()
    await turn()
  }
  return { queue, running, begin, end }
}

describe('Tasks that share a key', () => {
  it('run at the same time up to their limit, and tasks with other keys do not wait for them', async () => {
    const { begin, end, running } = watched(2)
    const all = ['a', 'b', 'c'].map(name => begin(name, ['x'], name))
    all.push(begin('d', ['y'], 'a'), begin('e', [], 'a'))
    await turn()
    assert.deepEqual([...running.keys()].sort(), ['a', 'b', 'd', 'e'])
    await end('a')
    assert.ok(running.has('c'))
    for (const name of ['b', 'c', 'd', 'e']) await end(name)
    await Promise.all(all)
  })

  it('run one at a time for each client', async () => {
    const { begin, end, running } = watched(2)
    const all = [begin('a', ['x'], 'one'), begin('b', ['x'], 'one'), begin('c', ['x'], 'other')]
    await turn()
    assert.deepEqual([...running.keys()], ['a', 'c'])
    await end('a')
    assert.ok(running.has('b'))
    for (const name of ['b', 'c']) await end(name)
    await Promise.all(all)
  })

  it('are rejected with `unavailable` if their turn does not come before the deadline', async () => {
    const { begin, end, queue } = watched(1)
    const first = begin('a', ['x', 'y'])
    await assert.rejects(
      begin('b', ['w', 'y'], 'other', performance.now() + 1),
      (error: unknown) => error instanceof AppError && error.code === 'unavailable',
    )
    await end('a')
    await first
    assert.equal(queue.size, 0)
  })

  it('never cause a deadlock, with any keys in any order, and leave nothing behind', async () => {
    const keys = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(fc.array(keys, { maxLength: 30 }), fc.integer({ min: 1, max: 2 }), async (tasks, atOnce) => {
        const queue = new KeyedQueue(atOnce)
        const using = new Map<string, number>()
        const work = (mine: readonly string[]) => async () => {
          for (const key of new Set(mine)) using.set(key, (using.get(key) ?? 0) + 1)
          assert.ok([...using.values()].every(count => count <= atOnce))
          await turn()
          for (const key of new Set(mine)) using.set(key, (using.get(key) ?? 0) - 1)
        }
        await Promise.all(tasks.map((mine, index) => queue.run(mine, String(index % 3), work(mine), later())))
        assert.equal(queue.size, 0)
      }),
      { numRuns: 50 },
    )
  })
})
