import { join } from 'node:path'
import { RedisServer } from '../test/support/redis.ts'
import { BenchServer } from './core/server.ts'
import { compareCpu } from './load.ts'

// Server CPU of GET /api/users/<id> with limits that instances share through Redis, against limits in memory. Requests
// come from many clients over 64 connections, as through a proxy. Interleaved in one run.

await using redis = await RedisServer.start()
const start = (env: Readonly<Record<string, string>>) =>
  BenchServer.start([join(import.meta.dirname, '..', 'bin', 'duet.mjs'), 'serve'], {
    PORT: '0',
    DATABASE_URL: 'sqlite::memory:',
    LOG_LEVEL: 'warn',
    RATE_LIMIT_MAX: '1000000',
    TRUST_PROXY: '127.0.0.1',
    ...env,
  })
await using shared = await start({ REDIS_URL: redis.url })
await using memory = await start({})

let sent = 0
const request = () => {
  sent = (sent + 1) % 10_000
  const client = `198.18.${sent >> 8}.${sent & 255}`
  return `GET /api/users/1 HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Forwarded-For: ${client}\r\n\r\n`
}
await compareCpu({ Redis: shared, memory }, request, { connections: 64 })
