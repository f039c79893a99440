import { readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { PostgresServer, postgresData, postgresFolder, postgresMissing } from '../support/postgres.ts'
import { RedisServer, redisMissing } from '../support/redis.ts'
import { createTemplates, sqliteTemplate } from '../support/templates.ts'

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

/** The folder of generated modules, each of which runs some test files. */
export const groupsFolder = 'groups'

/** Files that belong to the run, not to a test. */
const kept: readonly string[] = [groupsFolder, sqliteTemplate, postgresData]

/** Chromium creates files and removes their names at once. If it ends between the two, such a name stays. */
const isKept = (name: string): boolean => kept.includes(name) || name.startsWith('.org.chromium.')

/** Processes that still run with this folder as their temporary one (they are killed), and files in the folders. */
function leftBehind(folder: string, more: readonly string[]): readonly string[] {
  const processes = processesOf(folder).map(({ pid, command }) => {
    process.kill(pid, 'SIGKILL')
    return `process ${pid}: ${command}`
  })
  const files = [folder, ...more].flatMap(each => readdirSync(each)).filter(name => !isKept(name))
  return [...processes, ...files.map(name => `file ${name}`)]
}

/** Linux shows the environment of a process. On other systems no process is found. */
function processesOf(folder: string): readonly { readonly pid: number; readonly command: string }[] {
  const read = (pid: number, file: string): string => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, 'utf8')
    } catch {
      return '' // it has ended, or belongs to another user
    }
  }
  let pids: readonly number[] = []
  try {
    pids = readdirSync('/proc').map(Number).filter(Number.isInteger)
  } catch {}
  return pids
    .filter(pid => pid !== process.pid && read(pid, 'environ').includes(`\0TMPDIR=${folder}`))
    .map(pid => ({ pid, command: read(pid, 'cmdline').replaceAll('\0', ' ').trim() }))
}
