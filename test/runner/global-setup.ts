import { tmpdir } from 'node:os'
import { PostgresServer, postgresFolder, postgresMissing } from '../support/postgres.ts'
import { RedisServer, redisMissing } from '../support/redis.ts'
import { createTemplates } from '../support/templates.ts'
import { leftBehind } from './left-behind.ts'

let shared: PostgresServer | undefined
let redis: RedisServer | undefined

/** Starts one PostgreSQL server and one Redis server for the whole run. Each test has its own database on them. */
export async function globalSetup(): Promise<void> {
  const missing = postgresMissing()
  if (missing === undefined) shared = await PostgresServer.start()
  else console.log(`# Tests on PostgreSQL are skipped: ${missing}`)
  await createTemplates(tmpdir(), shared)
  const withoutRedis = redisMissing()
  if (withoutRedis === undefined) {
    redis = await RedisServer.start()
    process.env.DUET_TEST_REDIS = redis.url
  } else console.log(`# Tests with Redis are skipped: ${withoutRedis}`)
}

/** Fails the run if a test left a process or a file behind. */
export async function globalTeardown(): Promise<void> {
  await shared?.[Symbol.asyncDispose]()
  await redis?.[Symbol.asyncDispose]()
  const left = leftBehind(tmpdir(), [postgresFolder()])
  if (left.length === 0) return
  console.error(`Tests left behind:\n${left.join('\n')}`) // the runner fails without printing the reason
  throw new Error('Tests left something behind')
}
