import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { BenchServer } from './load.ts'
import { fillSqlite } from './plant.ts'
import { Subscribers } from './subscribers.ts'

// Server CPU per delivered event, and memory per idle subscriber: Duet compared with graphql-yoga and Apollo Server, both with
// graphql-ws, and with a bare loop that writes prepared frames. One run, the servers in turn.
// `npm install` in this folder brings the others; BENCH_SUBSCRIBERS=10000 asks for more.

const count = Number(process.env.BENCH_SUBSCRIBERS ?? 2000)
const rounds = Number(process.env.BENCH_ROUNDS ?? 3)
const eventsPerRound = Math.max(5, Math.round(60_000 / count))
const cases = {
  small: {
    subscription: 'subscription { postAdded { id title } }',
    mutation: 'mutation { createPost(title: "A title of a post", content: "Some content") { id } }',
    bytes: 90,
  },
  // The author's latest post with its ten comments, each with its author.
  nested: {
    subscription: `subscription { commentAdded(postId: 1) {
      id text author { name posts(limit: 1) { title comments { text author { name } } } } } }`,
    mutation: 'mutation { addComment(postId: 1, text: "A remark") { id } }',
    bytes: 850,
  },
} as const
type Case = (typeof cases)[keyof typeof cases]
const peer = join(import.meta.dirname, 'peers', 'server.mjs')
const programs: Readonly<Record<string, (path: string) => readonly string[]>> = {
  Duet: () => [join(import.meta.dirname, '..', 'bin', 'duet.mjs'), 'serve'],
  'graphql-yoga': path => [peer, 'yoga', path],
  'Apollo Server': path => [peer, 'apollo', path],
  'a bare loop': () => [join(import.meta.dirname, 'peers', 'bare-sockets.mjs')],
}

for (const [name, each] of Object.entries(cases)) {
  if (process.env.BENCH_CASE && process.env.BENCH_CASE !== name) continue
  console.log(`${count} subscribers, ${name} selection`)
  const folder = mkdtempSync(join(tmpdir(), 'duet-bench-'))
  const results = new Map(Object.keys(programs).map(program => [program, { cpu: 0, events: 0, memory: 0 }]))
  for (let round = 0; round < rounds; round++) {
    for (const [program, args] of Object.entries(programs)) {
      const result = results.get(program)
      const path = join(folder, `${round}-${program.replaceAll(/\W/g, '')}.db`)
      fillSqlite(path, 40, 10)
      const one = await measure(args(path), path, each)
      if (result === undefined) continue
      result.cpu += one.cpu
      result.events += one.events
      result.memory += one.memory / rounds
    }
  }
  const cost = ({ cpu, events }: { cpu: number; events: number }) => cpu / events
  const duet = results.get('Duet')
  for (const [program, result] of results) {
    const ratio = duet === undefined ? Number.NaN : cost(result) / cost(duet)
    console.log(
      `  ${program.padEnd(14)} ${cost(result).toFixed(2).padStart(7)} µs of CPU per delivered event ${ratio.toFixed(2).padStart(6)} x` +
        `  ${(result.memory / 1024).toFixed(1).padStart(6)} KB per subscriber`,
    )
  }
  rmSync(folder, { recursive: true, force: true })
}

async function measure(args: readonly string[], path: string, { subscription, mutation, bytes }: Case) {
  await using server = await BenchServer.start(['--expose-gc', ...args], {
    PORT: '0',
    DATABASE_URL: `sqlite:${path}`,
    LOG_LEVEL: 'warn',
    RATE_LIMIT_MAX: '0',
    SOCKETS_PER_CLIENT: '100000',
    DEMO_DATA: 'false',
  })
  const token = args[0]?.endsWith('duet.mjs') ? await logIn(server.port) : undefined
  const cause = () => post(server.port, token, mutation, bytes)
  await cause() // warm
  const before = server.memory()
  using subscribers = await Subscribers.open(server.port, count, subscription)
  await delay(1500)
  const memory = (server.memory() - before) / count
  for (let event = 0; event < 3; event++) await cause() // warm
  await subscribers.reach(3 * count)
  await delay(200)
  const cpu = server.cpu()
  const reached = subscribers.reach((3 + eventsPerRound) * count)
  for (let event = 0; event < eventsPerRound; event++) await cause()
  await reached
  await delay(50)
  return { cpu: server.cpu() - cpu, events: eventsPerRound * count, memory }
}

async function post(port: number, token: string | undefined, query: string, bytes: number): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    // The bare loop sends on what it is given, which is as long as what the others send.
    body: JSON.stringify({ query }).padEnd(bytes),
  })
  const text = await response.text()
  if (!response.ok || text.includes('"errors"')) throw new Error(text)
}

/** Makes the first user one who can log in. */
async function logIn(port: number): Promise<string> {
  const base = `http://127.0.0.1:${port}`
  const headers = { 'content-type': 'application/json' }
  const password = 'a long password'
  await fetch(`${base}/users/1`, { method: 'PATCH', headers, body: JSON.stringify({ password }) })
  const { email } = (await (await fetch(`${base}/users/1`)).json()) as { email: string }
  const answer = await fetch(`${base}/tokens`, { method: 'POST', headers, body: JSON.stringify({ email, password }) })
  return ((await answer.json()) as { token: string }).token
}
