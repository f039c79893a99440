import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { freePort } from '../test/support/ports.ts'
import { Client } from './client.ts'
import { BenchServer } from './core/server.ts'
import { Tokens } from './core/tokens.ts'
import { databaseFor } from './databases.ts'
import { fillStatements } from './plant.ts'
import { type Entrance, PlainSubscriber, type Subscriber, UsualSubscriber } from './storm/subscribers.ts'

// All subscribers of an instance lose it and come back at once, each after its last event, while posts and comments are
// written. Each must get every event once and in order, and nobody an error.

const { values } = parseArgs({
  options: {
    sockets: { type: 'string', default: '8000' },
    engine: { type: 'string', default: 'postgres' },
    threads: { type: 'string', default: '1' },
    /** How many posts they are subscribed to. With fewer posts than sockets, every other socket wants new posts. */
    posts: { type: 'string', default: '100' },
    /** How many events of each topic they miss. */
    missed: { type: 'string', default: '10' },
    /** Writes a second while they come back. */
    pace: { type: 'string', default: '4' },
    /** plain, or graphql-ws. */
    client: { type: 'string', default: 'plain' },
    anonymous: { type: 'boolean', default: false },
  },
})
const count = Number(values.sockets)
const posts = Number(values.posts)
const missed = Number(values.missed)
const engine = values.engine === 'sqlite' ? 'sqlite' : 'postgres'

await using stack = new AsyncDisposableStack()
const folder = mkdtempSync(join(tmpdir(), 'duet-storm-'))
stack.defer(() => rmSync(folder, { recursive: true, force: true }))
const { environment } = await databaseFor(
  engine,
  folder,
  stack,
  fillStatements(engine, Math.max(posts, 10), 0, count + 1),
)
const tokens = await Tokens.make()
const port = await freePort()
const program = [join(import.meta.dirname, '..', 'bin', 'duet.mjs'), 'serve']
const settings = {
  ...environment,
  PORT: String(port),
  THREADS: values.threads,
  TOKEN_KEYS: tokens.keys,
  TRUST_PROXY: '127.0.0.1',
  LOG_LEVEL: 'error',
  DEMO_DATA: 'false',
}
const logged = new Map<string, number>()
const onOutput = (text: string) => {
  for (const line of text.split('\n').filter(Boolean)) {
    const { msg, err } = JSON.parse(line)
    const what = `${msg} ${err?.message ?? ''}`
    logged.set(what, (logged.get(what) ?? 0) + 1)
  }
}
const start = () => BenchServer.start(program, settings, onOutput)
let server = await start()
stack.defer(() => server[Symbol.asyncDispose]())

const entrance: Entrance = { url: `ws://127.0.0.1:${port}/graphql`, gate: Promise.withResolvers() }
entrance.gate.resolve()
const subscribers: Subscriber[] = []
for (let n = 0; n < count; n++) {
  const address = `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`
  const token = values.anonymous ? undefined : tokens.of(n + 1)
  const postId = posts >= count || n % 2 === 0 ? 1 + (Math.floor(n / (posts >= count ? 1 : 2)) % posts) : undefined
  const options = { entrance, address, token, postId }
  subscribers.push(values.client === 'graphql-ws' ? new UsualSubscriber(options) : new PlainSubscriber(options))
  if (n % 50 === 49) await until(() => subscribers.every(each => each.acknowledgedAt > 0), 60)
}
await until(() => subscribers.every(each => each.acknowledgedAt > 0), 60)
await delay(2000)
report('Before')

entrance.gate = Promise.withResolvers()
for (const each of subscribers) each.cut()
using client = new Client(port)
client.token = tokens.of(count + 1)
let writes = 0
for (let n = 0; n < missed; n++) {
  await write('createPost(title: "T", content: "C") { id }')
  const comments = Array.from({ length: posts }, (_, at) => `addComment(postId: ${at + 1}, text: "T") { id }`)
  for (let at = 0; at < posts; at += 50)
    await write(
      comments
        .slice(at, at + 50)
        .map((each, alias) => `c${alias}: ${each}`)
        .join(' '),
    )
}
await server[Symbol.asyncDispose]()
server = await start()
const { length: before } = await told()

const lags: number[] = []
let refused = 0
let isOver = false
const writing = (async () => {
  while (!isOver) {
    const begun = performance.now()
    const field =
      writes % 2 === 0
        ? 'createPost(title: "T", content: "C") { id }'
        : `addComment(postId: ${1 + Math.floor(Math.random() * posts)}, text: "T") { id }`
    await write(field).catch(() => refused++)
    lags.push(performance.now() - begun)
    await delay(1000 / Number(values.pace))
  }
})()
let memory = 0
const watching = setInterval(() => {
  memory = Math.max(memory, server.memory())
}, 100)
const begun = performance.now()
const cpu = server.cpu()
entrance.gate.resolve()
await until(() => subscribers.every(each => each.acknowledgedAt > begun), 120)
const acknowledged = Math.max(...subscribers.map(each => each.acknowledgedAt)) - begun
console.log(`all acknowledged after ${seconds(acknowledged)}`)
const due = (await told()).slice(0, before)
const wanted = new Map(subscribers.map(each => [each, due.filter(event => each.wants(event)).length]))
await until(() => subscribers.every(each => each.ids.length >= (wanted.get(each) ?? 0)), 120)
console.log(
  `caught up with ${before} events after ${seconds(performance.now() - begun)}, CPU ${seconds((server.cpu() - cpu) / 1000)}, memory ${Math.round(memory / 2 ** 20)} MiB`,
)
await delay(3000)
isOver = true
await writing
clearInterval(watching)
const all = await told()
await until(() => subscribers.every(each => each.ids.length >= all.filter(event => each.wants(event)).length), 60)
const expected = (each: Subscriber) => all.filter(event => each.wants(event)).map(({ id }) => id)
const wrong = subscribers.filter(each => expected(each).join() !== each.ids.join()).length
lags.sort((a, b) => a - b)
console.log(`${all.length} events; ${wrong} subscribers did not get exactly theirs`)
console.log(
  `${lags.length} writes meanwhile: p50 ${lags[lags.length >> 1]?.toFixed(0)} ms, most ${lags.at(-1)?.toFixed(0)} ms, ${refused} refused`,
)
report('After')
for (const [what, times] of logged) console.log(`logged ${times} x ${what}`)
for (const each of subscribers) each.end()

function report(when: string): void {
  const kinds = new Map<string, number>()
  for (const each of subscribers)
    for (const trouble of each.troubles.splice(0)) kinds.set(trouble, (kinds.get(trouble) ?? 0) + 1)
  for (const [kind, times] of kinds) console.log(`${when}: ${times} x ${kind}`)
  if (kinds.size === 0) console.log(`${when}: no error`)
}

async function write(fields: string): Promise<void> {
  writes++
  const headers = { 'x-forwarded-for': `11.${writes >> 16}.${(writes >> 8) & 255}.${writes & 255}` }
  const { status, body } = await client.send('/graphql', {
    method: 'POST',
    headers,
    body: { query: `mutation { ${fields} }` },
  })
  if (status !== 200) throw new Error(body)
}

/** The truth: the events in the order of the log. */
async function told(): Promise<readonly Event[]> {
  const text = (position: string) =>
    `select kind, post_id, comment_id from outbox where ${position} is not null order by ${position}`
  const rows = engine === 'sqlite' ? ofSqlite(text('id')) : await ofPostgres(text('position'))
  return rows.map(({ kind, post_id, comment_id }) => ({
    kind: String(kind),
    postId: Number(post_id),
    id: Number(comment_id ?? post_id),
  }))
}

interface Event {
  readonly kind: string
  readonly postId: number
  readonly id: number
}

function ofSqlite(text: string): readonly Record<string, unknown>[] {
  using database = new DatabaseSync(join(folder, 'duet.db'), { readOnly: true })
  return database.prepare(text).all()
}

async function ofPostgres(text: string): Promise<readonly Record<string, unknown>[]> {
  const reader = new pg.Client({ connectionString: String(environment.DATABASE_URL) })
  await reader.connect()
  const { rows } = await reader.query(text)
  await reader.end()
  return rows
}

async function until(condition: () => boolean, most: number): Promise<void> {
  const deadline = performance.now() + most * 1000
  while (!condition() && performance.now() < deadline) await delay(20)
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
