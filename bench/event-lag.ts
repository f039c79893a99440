import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createMember } from '../test/support/rest.ts'
import { SocketClient } from '../test/support/sockets.ts'
import { BenchServer } from './core/server.ts'
import { databaseFor } from './databases.ts'

// Milliseconds from the answer to a mutation on one instance to its event on another one, both on one PostgreSQL. One
// instance writes, at a steady pace. BENCH_SECONDS says how long each pace is kept.

const paces = [2, 200]
const seconds = Number(process.env.BENCH_SECONDS ?? 30)
const program = [join(import.meta.dirname, '..', 'bin', 'duet.mjs'), 'serve']
const settings = {
  PORT: '0',
  LOG_LEVEL: 'warn',
  RATE_LIMIT_MAX: '0',
  SOCKET_MESSAGES_PER_SECOND: '0',
  DEMO_DATA: 'false',
} as const

await using stack = new AsyncDisposableStack()
const folder = mkdtempSync(join(tmpdir(), 'duet-bench-'))
stack.defer(() => rmSync(folder, { recursive: true, force: true }))
const { environment } = await databaseFor('postgres', folder, stack, [])
const start = async () => {
  const { port } = stack.use(await BenchServer.start(program, { ...settings, ...environment }))
  return { url: `http://127.0.0.1:${port}` }
}
const [one, other] = [await start(), await start()]
const { token } = await createMember(one)
// One socket may have a hundred operations under way.
const writers = await Promise.all(Array.from({ length: 8 }, () => SocketClient.connect(one, { token })))
for (const writer of writers) stack.use(writer)
let writes = 0
let refused = 0
const reader = stack.use(await SocketClient.connect(other))
const subscription = await reader.begin('subscription { postAdded { id } }').listening(write)
const arrivals = new Map<string, number>()
const { hear } = subscription
subscription.hear = message => {
  arrivals.set((message.payload as Told).data.postAdded.id, performance.now())
  hear.call(subscription, message)
}

for (const pace of [200, ...paces]) {
  const isWarmUp = arrivals.size === 0
  const lags = await measure(pace, isWarmUp ? 5 : seconds)
  if (isWarmUp) continue
  const at = (share: number) => (lags[Math.floor(lags.length * share)] ?? Number.NaN).toFixed(1)
  console.log(
    `${pace} a second: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${lags.at(-1)?.toFixed(1)} ms, of ${lags.length} events, ${refused} writes refused`,
  )
}

/** Writes at this pace, whether or not earlier writes are answered. Returns the lags, the least first. */
async function measure(pace: number, forSeconds: number): Promise<readonly number[]> {
  const answers = new Map<string, number>()
  const begun = performance.now()
  const written: Promise<unknown>[] = []
  for (let n = 0; n < pace * forSeconds; n++) {
    await delay(Math.max(0, begun + (n * 1000) / pace - performance.now()))
    const note = (id: string) => answers.set(id, performance.now())
    written.push(write('A title').then(note, () => refused++))
  }
  await Promise.all(written)
  await subscription.until(() => [...answers.keys()].every(id => arrivals.has(id)))
  const lags = [...answers].map(([id, answered]) => Math.max(0, (arrivals.get(id) ?? Number.NaN) - answered))
  return lags.sort((a, b) => a - b)
}

async function write(text: string): Promise<string> {
  const mutation = 'mutation ($text: String!) { createPost(title: $text, content: $text) { id } }'
  const writer = writers[++writes % writers.length] ?? reader
  return (await writer.read<{ createPost: { id: string } }>(mutation, { text })).createPost.id
}

interface Told {
  readonly data: { readonly postAdded: { readonly id: string } }
}
