import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import type { RateLimiter } from '../../src/core/ports.ts'
import type { RedisLimits } from '../../src/limits/redis-limits.ts'
import { together } from '../runner/together.ts'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { postgres } from '../support/engines.ts'
import { ask } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { register, tryLogin } from '../support/logins.ts'
import type { LogLine } from '../support/logs.ts'
import { serveConnections } from '../support/ports.ts'
import { askRedis, newRedisDatabase, RedisServer } from '../support/redis.ts'
import { metricOf } from '../support/sockets.ts'
import { assertSoon, testTimeoutMs, waitUntil, within } from '../support/wait.ts'
import { openLimits, redis } from './limiters.ts'

const { skip } = redis
const hour = 3_600_000
const secret = 'pa55word'

/** Limits, and a record of the reported outages and recoveries of Redis. */
async function open(url: string, timeoutMs = testTimeoutMs) {
  const reports: string[] = []
  const onChange = (up: boolean, reason?: string) => reports.push(up ? 'back' : `away: ${reason}`)
  const limits = await openLimits(url, { onChange, timeoutMs })
  return { limits, reports, [Symbol.dispose]: () => limits[Symbol.dispose]() }
}

/** The same, of a Redis of its own. */
async function openOwn(timeoutMs?: number) {
  const server = await RedisServer.start()
  const { limits, reports } = await open(server.url, timeoutMs)
  const end = async () => {
    limits[Symbol.dispose]()
    await server[Symbol.asyncDispose]()
  }
  return { server, limits, reports, [Symbol.asyncDispose]: end }
}

/** Checks that limits are kept without Redis, and without waiting for it. */
async function assertLocal(limits: RedisLimits): Promise<void> {
  const limiter = limits.limiter('x', 2, hour)
  const allowances = [1, 2, 3].map(() => limiter.take('somebody'))
  assert.ok(allowances.every(allowance => !(allowance instanceof Promise)))
  const allowed = (await Promise.all(allowances)).map(each => each.allowed)
  assert.deepEqual(allowed, [true, true, false])
  assert.ok(!(limiter.giveBack('somebody') instanceof Promise))
  assert.ok(!(await limiter.take('somebody')).allowed)
  await limiter.giveBack('somebody')
  await limiter.giveBack('somebody')
  assert.ok((await limiter.take('somebody')).allowed)
}

const take = (limiter: RateLimiter, key: string) => within(Promise.resolve(limiter.take(key)), 'an allowance')

describe('While Redis is unavailable, each instance keeps the limits alone', { skip }, () => {
  const it = together()

  it('after Redis was killed; waiting calls are answered at once, and every outage is reported', async () => {
    await using own = await openOwn()
    const { server, limits, reports } = own
    server.signal('SIGSTOP')
    const limiter = limits.limiter('x', 1, hour)
    const waiting = Promise.all([take(limiter, 'a'), limiter.giveBack('a'), take(limiter, 'a'), take(limiter, 'a')])
    await server.kill()
    const [first, , second, third] = await waiting
    assert.deepEqual([first.allowed, second.allowed, third.allowed], [true, true, false])
    await assertLocal(limits)
    await waitUntil(() => reports.length > 0)
    assert.match(reports.join(), /^away: (ECONNREFUSED|ECONNRESET|connection closed)$/)
    await server.resume()
    await waitUntil(() => limits.up)
    assert.deepEqual(reports.slice(1), ['back'])
    assert.ok(limiter.take('a') instanceof Promise)
    await server.kill()
    await assertSoon(() => reports.length > 2)
    assert.match(String(reports[2]), /^away/)
  })

  it('while Redis hangs; all waiting calls are answered after one timeout, and late answers are ignored', async () => {
    await using own = await openOwn(1_000)
    const { server, limits, reports } = own
    server.signal('SIGSTOP')
    const limiter = limits.limiter('x', 1, hour)
    const first = take(limiter, 'a')
    await delay(800)
    const second = take(limiter, 'b')
    await first
    assert.notEqual(await Promise.race([second, delay(600, 'later')]), 'later', 'the second waited for another timeout')
    await assertLocal(limits)
    await waitUntil(() => reports.length === 1)
    server.signal('SIGCONT')
    await waitUntil(() => limits.up)
    assert.match(reports.join(), /^away: (Command timed out|ETIMEDOUT),back$/)
    assert.ok((await take(limits.limiter('y', 1, hour), 'a')).allowed)
  })

  it('while Redis answers with an error, such as that it has no memory', async () => {
    await using own = await openOwn()
    const { server, limits, reports } = own
    await askRedis(server.url, 'config', 'set', 'maxmemory', '1')
    assert.ok((await take(limits.limiter('x', 1, hour), 'a')).allowed)
    assert.ok(!limits.up)
    await assertLocal(limits)
    await waitUntil(() => reports.length === 1)
    await askRedis(server.url, 'config', 'set', 'maxmemory', '0')
    await waitUntil(() => limits.up)
    assert.equal(reports.join(), 'away: OOM,back')
  })

  it('while Redis refuses the password, which is never printed', async () => {
    await using server = await RedisServer.start()
    await askRedis(server.url, 'config', 'set', 'requirepass', 'another')
    using opened = await open(server.url.replace('//', `//:${secret}@`))
    const { limits, reports } = opened
    await assertLocal(limits)
    await server.kill() // the new server has no password
    assert.equal(reports.length, 1)
    assert.match(reports.join(), /^away: [A-Z]+$/)
  })

  it('but not when Redis has lost all data, or only the script', async () => {
    await using own = await openOwn()
    const { server, limits, reports } = own
    const limiter = limits.limiter('forgotten', 1, hour)
    for (const command of ['flushall', 'script']) {
      assert.ok((await take(limiter, 'a')).allowed)
      assert.ok(!(await take(limiter, 'a')).allowed)
      await askRedis(server.url, command, ...(command === 'script' ? ['flush'] : []))
      assert.equal((await take(limiter, 'a')).allowed, command === 'flushall')
      await askRedis(server.url, 'flushall')
    }
    assert.deepEqual(reports, [])
  })

  it('but not when Redis has closed the connection: a new one is opened, one a second at most, and no outage is reported', async () => {
    await using server = await RedisServer.start()
    const begun = performance.now()
    using opened = await open(`${server.url}/7`)
    const { limits, reports } = opened
    const limiter = limits.limiter('closed', 2, hour)
    await take(limiter, 'a')
    const connection = async () => /^id=(\d+) .* db=7 /m.exec(String(await askRedis(server.url, 'client', 'list')))?.[1]
    const old = Number(await connection())
    await askRedis(server.url, 'client', 'kill', 'id', old)
    await waitUntil(async () => Number(await connection()) > old)
    await waitUntil(() => limits.up)
    assert.ok(performance.now() - begun >= 1_000)
    assert.equal((await take(limiter, 'a')).remaining, 0)
    assert.deepEqual(reports, [])
  })
})

it('a limit is kept by Redis though this process was too busy to read the answer in time', { skip }, async () => {
  await using own = await openOwn(400)
  const { limits, reports } = own
  const taken = take(limits.limiter('busy', 1, hour), 'a')
  await turn() // now the command is sent
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700)
  await taken
  assert.deepEqual(reports, [])
})

/** Servers that are not Redis. */
const strangers: Readonly<Record<string, (socket: Socket) => void>> = {
  'quotes the password in its error': socket =>
    socket.on('data', () => socket.write(`-ERR unknown command 'HELLO', with args: '${secret}'\r\n`.repeat(4))),
  'speaks HTTP': socket => socket.on('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
  'says nothing': () => {},
}
for (const [what, answer] of Object.entries(strangers)) {
  it(`a server at the address of Redis that ${what} is not used, and nothing of it is logged`, { skip }, async () => {
    await using other = await serveConnections(answer)
    using opened = await open(`redis://:${secret}@127.0.0.1:${other.port}`, 200)
    const { limits, reports } = opened
    await assertLocal(limits)
    assert.equal(reports.length, 1)
    assert.match(reports.join(), /^away: [\w ]+$/)
    assert.ok(!reports.join().includes(secret))
  })
}

const linesAboutRedis = (logs: readonly LogLine[]) =>
  logs.filter(({ msg }) => /redis/i.test(String(msg))).map(({ level, msg, reason }) => ({ level, msg, reason }))

describe('The service with Redis', { skip }, () => {
  it('shares the login limits with other instances', async () => {
    const env = { REDIS_URL: await newRedisDatabase(), TOKEN_KEYS: tokenKeys }
    await using first = await startTestApp(env)
    await using second = await startTestApp(env)
    for (const { url } of [first, second]) await register(url)
    for (let times = 0; times < 5; times++) {
      for (const { url } of [first, second])
        assert.equal((await tryLogin(url, 'ann@example.com', 'wrong password')).status, 401)
    }
    for (const { url } of [first, second]) assert.equal((await tryLogin(url)).status, 429)
    assert.equal(await metricOf(first, 'duet_redis_up'), 1)
    assert.deepEqual(linesAboutRedis(first.logs), [])
  })

  it('starts while Redis is unreachable, warns once, is ready, and shares its limits when Redis is reachable', async () => {
    await using server = await RedisServer.start()
    await server.kill()
    await using app = await startTestApp({ THREADS: '1', REDIS_URL: server.url.replace('//', '//:pa55word@') })
    const msg = 'Redis is away: until it is back, each instance has its own limits'
    const away = { level: 40, msg, reason: 'ECONNREFUSED' }
    assert.deepEqual(linesAboutRedis(app.logs), [away])
    assert.equal((await ask(`${app.url}/health/ready`)).status, 200)
    assert.equal((await ask(`${app.url}/api/users`)).headers.get('ratelimit'), '"default";r=99;t=60')
    assert.equal(await metricOf(app, 'duet_redis_up'), 0)
    await server.resume()
    await waitUntil(async () => (await metricOf(app, 'duet_redis_up')) === 1)
    const back = { level: 30, msg: 'Redis is back: instances share their limits again', reason: undefined }
    assert.deepEqual(linesAboutRedis(app.logs), [away, back])
    assert.ok(!JSON.stringify(app.logs).includes('pa55word'))
  })
})

it('on PostgreSQL without REDIS_URL the log warns that limits are not shared', { skip: postgres.skip }, async () => {
  await using app = await startTestAppOn(postgres, { REDIS_URL: '' })
  const msg = 'Without REDIS_URL each instance has its own rate and login limits'
  assert.deepEqual(linesAboutRedis(app.logs), [{ level: 40, msg, reason: undefined }])
  assert.doesNotMatch((await ask(`${app.url}/metrics`)).body, /^duet_redis_up /m)
})
