import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { Worker } from 'node:worker_threads'
import { limitsMemory, MemoryLimits } from '../../src/limits/memory-limits.ts'
import { TestClock } from '../support/clock.ts'
import { onlyInFull } from '../support/form.ts'
import type { HammerData } from './hammer.ts'

const hour = 3_600_000

describe('Limits that threads share', () => {
  it('are exact, however many threads count at the same time', async () => {
    const workerData: HammerData = { memory: limitsMemory(), times: 10_000 }
    const hammers = [1, 2, 3].map(() => new Worker(new URL('./hammer.ts', import.meta.url), { workerData }))
    const allowed = await Promise.all(hammers.map(async worker => Number((await once(worker, 'message'))[0])))
    const sum = allowed.reduce((all, count) => all + count)
    assert.equal(sum, workerData.times, 'of three times the limit exactly the limit is allowed')
  })

  it('go on when a thread was ended while it counted', () => {
    const memory = limitsMemory()
    const limiter = new MemoryLimits(new TestClock(), memory).limiter('x', 2, hour)
    limiter.take('a client')
    new Int32Array(memory)[0] = 1
    assert.equal(limiter.take('a client').remaining, 0)
    assert.equal(limiter.take('a client').allowed, false)
  })

  it('remember 100,000 clients, nearly all of them, and mistake none for another', () => {
    const limiter = new MemoryLimits(new TestClock()).limiter('x', 1, hour)
    let mistaken = 0
    for (let client = 0; client < 100_000; client++) if (!limiter.take(`client ${client}`).allowed) mistaken++
    assert.equal(mistaken, 0)
    let forgotten = 0
    for (let client = 0; client < 100_000; client++) if (limiter.take(`client ${client}`).allowed) forgotten++
    assert.ok(forgotten < 100, `${forgotten} were forgotten`)
  })

  it('forget the window that ends first when there are too many', { skip: onlyInFull }, () => {
    const clock = new TestClock()
    const limiter = new MemoryLimits(clock).limiter('x', 1, hour)
    const latest = Array.from({ length: 100 }, (_, client) => `latest ${client}`)
    for (let client = 0; client < 700_000; client++) limiter.take(`client ${client}`)
    clock.pass(1)
    for (const client of latest) limiter.take(client)
    assert.deepEqual(
      latest.filter(client => limiter.take(client).allowed),
      [],
    )
  })
})

it('clients that are refused are not refused for longer if the clock is set back', () => {
  const clock = new TestClock()
  const refused = new MemoryLimits(clock).refusedClients()
  refused.add('a', 60)
  clock.pass(-1_000)
  assert.equal(refused.has('a'), false)
})
