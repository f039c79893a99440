import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { CountTable, countMemory } from '../../src/limits/count-table.ts'
import { SharedRateLimiter, windowMemory } from '../../src/limits/shared-rate-limiter.ts'
import { SharedTally } from '../../src/limits/shared-tally.ts'
import { runs } from '../support/form.ts'
import type { HammerData } from './hammer.ts'

describe('Counts that threads share', () => {
  it('are exact, however many threads count at the same time', async () => {
    const [windows, counts] = [windowMemory(), countMemory()]
    const times = 10_000
    const allowed = await Promise.all(
      [1, 2, 3].map(async owner => {
        const workerData: HammerData = { owner, times, windows, counts }
        const worker = new Worker(new URL('./hammer.ts', import.meta.url), { workerData })
        const [count] = await once(worker, 'message')
        return Number(count)
      }),
    )
    assert.equal(
      allowed.reduce((sum, count) => sum + count),
      times,
      'of three times the limit exactly the limit is allowed',
    )
    const tally = new SharedTally('sockets', new CountTable(counts, 4))
    for (let client = 0; client < 10; client++) assert.equal(tally.count(`client ${client}`), (3 * times) / 10)
    for (let client = 10; client < 100; client++) assert.equal(tally.count(`client ${client}`), 0)
  })

  it('are taken at a time that is read under the lock, never at one that is older than the window of another thread', () => {
    const memory = windowMemory()
    const lock = new Int32Array(memory, 0, 1)
    const owners: (number | undefined)[] = []
    const now = () => {
      owners.push(lock[0])
      return 1_000
    }
    const limiter = new SharedRateLimiter(2, 60_000, { now }, memory, 3)
    assert.deepEqual([limiter.take('a client').remaining, limiter.take('a client').remaining], [1, 0])
    assert.deepEqual(owners, [3, 3])
    assert.deepEqual([...lock], [0])
  })

  it('equal a naive count of all threads, without the threads that have ended', () => {
    const step = fc.record({
      thread: fc.constantFrom(1, 2, 3),
      key: fc.constantFrom('a', 'b', 'c'),
      action: fc.constantFrom('add', 'add', 'remove', 'end'),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), steps => {
        const memory = countMemory()
        const threads = [1, 2, 3].map(owner => ({
          table: new CountTable(memory, owner),
          own: new Map<string, number>(),
        }))
        for (const { thread, key, action } of steps) {
          const { table, own } = threads[thread - 1] ?? assert.fail('no such thread')
          const count = own.get(key) ?? 0
          if (action === 'add') {
            own.set(key, count + 1)
            table.add(key, 1)
          } else if (action === 'remove' && count > 0) {
            own.set(key, count - 1)
            table.add(key, -1)
          } else if (action === 'end') {
            new CountTable(memory, 9).forget(thread)
            own.clear()
          }
          for (const each of ['a', 'b', 'c']) {
            const expected = threads.reduce((sum, { own }) => sum + (own.get(each) ?? 0), 0)
            assert.equal(table.count(each), expected)
          }
        }
      }),
      { numRuns: runs(40, 1000) },
    )
  })

  it('leave nothing behind, and a name that finds no room is counted by its thread', () => {
    const memory = countMemory()
    const tally = new SharedTally('connections', new CountTable(memory, 1))
    const other = new SharedTally('connections', new CountTable(memory, 2))
    const clients = Array.from({ length: 100_000 }, (_, index) => `client ${index}`)
    for (const client of clients) assert.equal(tally.add(client, 1), 1)
    assert.equal(tally.add('client 99999', 1), 2)
    assert.equal(other.count('client 0'), 1)
    assert.equal(other.count('client 99999'), 0, 'the table is full, so other threads do not see it')
    tally.add('client 99999', -1)
    for (const client of clients) assert.equal(tally.add(client, -1), 0)
    assert.ok(new Int32Array(memory).subarray(16).every(cell => cell === 0))
  })
})
