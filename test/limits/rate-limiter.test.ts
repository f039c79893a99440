import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { limitsMemory, MemoryLimits } from '../../src/limits/memory-limits.ts'
import { TestClock } from '../support/clock.ts'
import { runs } from '../support/form.ts'
import { askRedis, newRedisDatabase } from '../support/redis.ts'
import { limiterKinds, openLimits, redis } from './limiters.ts'

const hour = 3_600_000

for (const kind of limiterKinds) {
  describe(`The limiter in ${kind.name}`, { skip: kind.skip }, () => {
    it('counts and gives back like a naive implementation, at all times and for all keys', async () => {
      await using place = await kind.create()
      const step = fc.record({
        key: fc.constantFrom('a', 'b', 'c'),
        minutes: fc.constantFrom(0, 0, 0, 10, 59, 60, 61),
        isReturn: fc.boolean(),
      })
      let run = 0
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 30 }), async (limit, steps) => {
          const limiter = place.limiter(`run ${run++}`, limit, hour)
          const model = new Map<string, { start: number; taken: number }>()
          let now = 0
          for (const { key, minutes, isReturn } of steps) {
            now += minutes
            if (minutes > 0) await place.pass(minutes * 60_000)
            const known = model.get(key)
            const window = known === undefined || now >= known.start + 60 ? { start: now, taken: 0 } : known
            if (isReturn) {
              await limiter.giveBack(key)
              window.taken = Math.max(0, window.taken - 1)
              continue
            }
            model.set(key, window)
            window.taken++
            const { resetSeconds, ...allowance } = await limiter.take(key)
            assert.deepEqual(allowance, {
              allowed: window.taken <= limit,
              excess: Math.max(0, window.taken - limit),
              remaining: Math.max(0, limit - window.taken),
            })
            assert.equal(Math.ceil(resetSeconds / 60), window.start + 60 - now)
          }
        }),
        { numRuns: runs(50, 500) },
      )
    })

    it('gives concurrent calls of take different numbers, also those that come while others wait for theirs', async () => {
      await using place = await kind.create()
      const limiter = place.limiter('x', 100, hour)
      const calls: ReturnType<typeof limiter.take>[] = []
      while (calls.length < 1_000) {
        for (let times = 0; times < 100; times++) calls.push(limiter.take('a'))
        await turn()
      }
      const allowances = await Promise.all(calls)
      for (const [at, { remaining, excess }] of allowances.entries()) assert.equal(remaining - excess, 99 - at)
      assert.equal(allowances.filter(({ allowed }) => allowed).length, 100)
    })

    it('keeps the order of concurrent calls that take and give back', async () => {
      await using place = await kind.create()
      const limiter = place.limiter('x', 1, hour)
      const first = limiter.take('a')
      const returned = [limiter.giveBack('a'), limiter.giveBack('a')]
      const [second, third] = [limiter.take('a'), limiter.take('a')]
      await Promise.all(returned)
      assert.deepEqual([(await first).allowed, (await second).allowed, (await third).allowed], [true, true, false])
    })

    it('blocks no client for longer than a window when the clock is set back', async () => {
      await using place = await kind.create()
      const limiter = place.limiter('x', 1, hour)
      await limiter.take('a')
      assert.ok(!(await limiter.take('a')).allowed)
      await place.pass(-2 * hour)
      assert.ok((await limiter.take('a')).allowed)
      assert.deepEqual(await limiter.take('a'), { allowed: false, excess: 1, remaining: 0, resetSeconds: 3600 })
    })

    it('distinguishes keys of any characters and length', async () => {
      await using place = await kind.create()
      const limiter = place.limiter('x', 1, hour)
      const keys = ['', ' ', '\0', '\r\n', 'a\r\nFLUSHALL\r\n', '{a}', '{a}b', '*', 'é', 'e\u0301', '😀', '1', '1 ']
      const long = 'x'.repeat(10_000)
      for (const key of [...keys, long, `${long}x`]) assert.ok((await limiter.take(key)).allowed, JSON.stringify(key))
      for (const key of [...keys, long]) assert.ok(!(await limiter.take(key)).allowed, JSON.stringify(key))
    })
  })
}

describe('Limits that threads share', () => {
  it('are exact, however many threads count at the same time', async () => {
    const workerData = { memory: limitsMemory(), times: 10_000 }
    const hammers = [1, 2, 3].map(() => new Worker(new URL('./hammer.ts', import.meta.url), { workerData }))
    const allowed = await Promise.all(hammers.map(async worker => Number((await once(worker, 'message'))[0])))
    const sum = allowed.reduce((all, count) => all + count)
    assert.equal(sum, workerData.times, 'of three times the limit exactly the limit is allowed')
  })

  it('go on when a thread was ended while it counted', t => {
    const memory = limitsMemory()
    const limiter = new MemoryLimits(new TestClock(), memory).limiter('x', 2, hour)
    limiter.take('a client')
    limiter.giveBack('another client')
    assert.equal(new Int32Array(memory)[0], 0, 'who has counted holds up no other thread')
    new Int32Array(memory)[0] = 1
    const { mock } = t.mock.method(Atomics, 'wait', () => assert.ok(mock.callCount() < 10_000, 'it waits without end'))
    assert.equal(limiter.take('a client').remaining, 0)
    assert.equal(limiter.take('a client').allowed, false)
  })

  it('keep a window where no client can know, because its place differs from process to process', () => {
    const hashes = [limitsMemory(), limitsMemory()].map(memory => {
      new MemoryLimits(new TestClock(), memory).limiter('x', 1, hour).take('a client')
      return new Float64Array(memory, 32).find(cell => cell !== 0)
    })
    assert.notEqual(hashes[0], hashes[1])
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

  it('forget the window that ends first when there are too many', () => {
    const limits = new MemoryLimits(new TestClock())
    const [short, long] = [limits.limiter('short', 1, hour), limits.limiter('long', 1, 2 * hour)]
    const clients = Array.from({ length: 1_000 }, (_, client) => `client ${client}`)
    for (const client of clients) long.take(client)
    for (let client = 0; client < 200_000; client++) short.take(`client ${client}`)
    const forgotten = clients.filter(client => long.take(client).allowed)
    assert.deepEqual(forgotten, [])
  })

  it('do not refuse a refused client for longer if the clock is set back', () => {
    const clock = new TestClock()
    const refused = new MemoryLimits(clock).refusedClients()
    refused.add('a', 60)
    clock.pass(-1_000)
    assert.equal(refused.has('a'), false)
  })
})

describe('Limits in Redis', { skip: redis.skip }, () => {
  it('are shared by all instances with the same secret, one limit per name', async () => {
    const url = await newRedisDatabase()
    using first = await openLimits(url)
    using second = await openLimits(url)
    using stranger = await openLimits(url, { secret: 'another secret' })
    assert.equal((await first.limiter('x', 5, hour).take('a')).remaining, 4)
    assert.equal((await second.limiter('x', 5, hour).take('a')).remaining, 3)
    await first.limiter('x', 5, hour).giveBack('a')
    assert.equal((await second.limiter('x', 5, hour).take('a')).remaining, 3)
    assert.equal((await second.limiter('y', 5, hour).take('a')).remaining, 4)
    assert.equal((await stranger.limiter('x', 5, hour).take('a')).remaining, 4)
  })

  it('leave nothing there that tells who was counted, or that lasts longer than the window', async () => {
    const url = await newRedisDatabase()
    using limits = await openLimits(url)
    const limiter = limits.limiter('x', 1, 60_000)
    await Promise.all(['192.0.2.1', '192.0.2.1 ann@example.com'].flatMap(key => [limiter.take(key), limiter.take(key)]))
    await limiter.giveBack('192.0.2.2')
    assert.ok(limits.up)
    const keys = (await askRedis(url, 'keys', 'duet:*')) as string[]
    const counters = keys.filter(key => key !== 'duet:probe')
    assert.equal(counters.length, 2)
    for (const key of counters) {
      assert.match(key, /^duet:[\w-]{22}$/)
      assert.equal(await askRedis(url, 'get', key), '2')
    }
    for (const key of keys) {
      const left = Number(await askRedis(url, 'pttl', key))
      assert.ok(left !== -1 && left <= 60_000, `${key} expires in ${left} ms`)
    }
  })

  it('start again if the remaining time is longer than a window that was made shorter', async () => {
    using limits = await openLimits(await newRedisDatabase())
    await limits.limiter('x', 1, hour).take('a')
    const shorter = limits.limiter('x', 1, 60_000)
    assert.deepEqual(await shorter.take('a'), { allowed: true, excess: 0, remaining: 0, resetSeconds: 60 })
    assert.ok(!(await shorter.take('a')).allowed)
  })
})
