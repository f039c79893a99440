import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { postgres } from '../support/engines.ts'
import { ask } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { register, tryLogin } from '../support/logins.ts'
import type { LogLine } from '../support/logs.ts'
import { newRedisDatabase, RedisServer } from '../support/redis.ts'
import { waitUntil } from '../support/wait.ts'
import { redis } from './limiters.ts'

const linesAboutRedis = (logs: readonly LogLine[]) =>
  logs.filter(({ msg }) => /redis/i.test(String(msg))).map(({ level, msg, reason }) => ({ level, msg, reason }))

async function redisUp(url: string): Promise<string | undefined> {
  return /^duet_redis_up (\d)$/m.exec((await ask(`${url}/metrics`)).body)?.[1]
}

describe('The service with Redis', { skip: redis.skip }, () => {
  it('shares the login limits with other instances', async () => {
    const env = { REDIS_URL: await newRedisDatabase(), TOKEN_KEYS: tokenKeys }
    await using first = await startTestApp(env)
    await using second = await startTestApp(env)
    for (const { url } of [first, second]) await register(url)
    for (let times = 0; times < 5; times++) {
      for (const { url } of [first, second]) {
        assert.equal((await tryLogin(url, 'ann@example.com', 'wrong password')).status, 401)
      }
    }
    for (const { url } of [first, second]) assert.equal((await tryLogin(url)).status, 429)
    assert.equal(await redisUp(first.url), '1')
    assert.deepEqual(linesAboutRedis(first.logs), [])
  })

  it('starts while Redis is unreachable, warns once, is ready, and shares its limits when Redis is reachable', async () => {
    await using server = await RedisServer.start()
    await server.kill()
    await using app = await startTestApp({ THREADS: '1', REDIS_URL: server.url.replace('//', '//:pa55word@') })
    const away = {
      level: 40,
      msg: 'Redis is away: until it is back, each instance has its own limits',
      reason: 'ECONNREFUSED',
    }
    assert.deepEqual(linesAboutRedis(app.logs), [away])
    assert.equal((await ask(`${app.url}/health/ready`)).status, 200)
    assert.equal((await ask(`${app.url}/api/users`)).headers.get('ratelimit'), '"default";r=99;t=60')
    assert.equal(await redisUp(app.url), '0')
    await server.resume()
    await waitUntil(async () => (await redisUp(app.url)) === '1')
    const back = { level: 30, msg: 'Redis is back: instances share their limits again', reason: undefined }
    assert.deepEqual(linesAboutRedis(app.logs), [away, back])
    assert.ok(!JSON.stringify(app.logs).includes('pa55word'))
  })
})

it('on PostgreSQL without REDIS_URL the log warns that limits are not shared', { skip: postgres.skip }, async () => {
  await using app = await startTestAppOn(postgres, { REDIS_URL: '' })
  const msg = 'Without REDIS_URL each instance has its own rate and login limits'
  assert.deepEqual(linesAboutRedis(app.logs), [{ level: 40, msg, reason: undefined }])
  assert.equal(await redisUp(app.url), undefined)
})
