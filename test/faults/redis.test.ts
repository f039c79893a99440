import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { redis } from '../limits/limiters.ts'
import { postgres } from '../support/engines.ts'
import { onlyInFull } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { serveDuet } from '../support/process.ts'
import { askRedis, RedisServer } from '../support/redis.ts'
import { shared } from '../support/shared.ts'
import { metricOf } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'
import { type Server, startTwo } from './instance.ts'
import { runWorkers } from './payers.ts'

/** A request from `direct` counts for its sender. A request from `proxy` counts for the last address in its header. */
const direct = '127.0.0.1'
const proxy = '127.0.0.2'
const limits = { RATE_LIMIT_MAX: '100', TRUST_PROXY: proxy, LOG_LEVEL: 'info' }

describe('F9: limits that two servers share through Redis', { skip: redis.skip || postgres.skip }, () => {
  const server = shared(() => RedisServer.start())
  const database = shared(() => postgres.create())

  async function statusOf({ url }: Server, localAddress: string, forwarded: string): Promise<number> {
    const headers = { 'x-forwarded-for': forwarded, forwarded: `for=${forwarded}` }
    return (await ask(`${url}/api/users`, { localAddress, headers })).status
  }

  /** The number of requests of one client that each server accepts. All others must be refused with 429. */
  async function passed(instances: readonly Server[], count: number, from: string, name: (n: number) => string) {
    const statuses = await Promise.all(
      instances.map(each => Promise.all(Array.from({ length: count }, (_, n) => statusOf(each, from, name(n))))),
    )
    for (const status of statuses.flat()) assert.ok(status === 200 || status === 429, `status ${status}`)
    return statuses.map(each => each.filter(status => status === 200).length)
  }

  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)
  const forged = (n: number) => `198.51.100.${n % 256}`
  const inOneNetwork = (n: number) => `${forged(n)}, 2001:db8:1:2:${n.toString(16)}::${n}`

  it('accept exactly 100 of 200 requests of one client, whatever address it claims, and count an IPv6 /64 as one client', async () => {
    await using parts = new AsyncDisposableStack()
    const instances = await startTwo(database, parts, { ...limits, REDIS_URL: server.url })
    assert.equal(sum(await passed(instances, 100, direct, forged)), 100)
    assert.equal(sum(await passed(instances, 100, proxy, inOneNetwork)), 100)
  })

  it('are kept by each server alone while Redis is killed or hangs, no request gets a 5xx, and later they are shared again', {
    skip: onlyInFull,
  }, async t => {
    await using parts = new AsyncDisposableStack()
    const instances = await startTwo(database, parts, { ...limits, REDIS_URL: server.url, REDIS_TIMEOUT_MS: '250' })
    const others: number[] = []
    const recoveries: number[] = []
    const faults = [
      [() => server.kill(), () => server.resume()],
      [() => server.signal('SIGSTOP'), () => server.signal('SIGCONT')],
    ] as const
    let going = true
    const served = runWorkers(8, async worker => {
      for (let n = worker; going; n = (n + 8) % 65_536)
        others.push(await statusOf(instances[n % 2] ?? assert.fail(), proxy, `10.0.${n >> 8}.${n & 255}`))
    })
    try {
      for (let round = 0; round < 5; round++) {
        for (const [fault, end] of faults) {
          await fault()
          const client = `192.0.2.${recoveries.length}`
          assert.deepEqual(await passed(instances, 150, proxy, () => client), [100, 100])
          const started = performance.now()
          await end()
          await waitUntil(async () => (await Promise.all(instances.map(sharesLimits))).every(Boolean))
          recoveries.push(performance.now() - started)
          assert.equal(sum(await passed(instances, 150, proxy, () => `203.0.113.${recoveries.length}`)), 100)
        }
        await askRedis(server.url, 'flushall')
      }
    } finally {
      going = false
    }
    await served
    t.diagnostic(`${others.length} answers beside ${recoveries.length} faults; shared again after ${recoveries} ms`)
    assert.deepEqual([...new Set(others)], [200])
    for (const instance of instances) assert.deepEqual(instance.faults, [])
    assert.ok(Math.max(...recoveries) < 5_000, `shared again after ${recoveries} ms`)
  })

  it('do not delay the stop of a server while Redis hangs', async () => {
    await using duet = serveDuet({ REDIS_URL: server.url, REDIS_TIMEOUT_MS: '250' })
    const { url } = await duet.address()
    server.signal('SIGSTOP')
    try {
      assert.equal((await ask(`${url}/api/users`)).status, 200)
      duet.child.kill('SIGTERM')
      assert.equal((await duet.outcome()).code, 0)
    } finally {
      server.signal('SIGCONT')
    }
  })
})

const sharesLimits = async (app: Server): Promise<boolean> => (await metricOf(app, 'duet_redis_up')) === 1
