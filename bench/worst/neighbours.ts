import { setTimeout as delay } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { type Answer, Client } from '../client.ts'

/** Milliseconds until answers came to others: half of them, all but one in a hundred, and the longest. */
export interface Latencies {
  readonly p50: number
  readonly p99: number
  readonly longest: number
  readonly failed: number
}

interface Task {
  readonly port: number
  readonly perSecond: number
  readonly ms: number
}

/** Ordinary requests of 50 other clients, so many a second, in a thread of their own. */
export async function neighbours(task: Task): Promise<Latencies> {
  const worker = new Worker(new URL(import.meta.url), { workerData: task })
  const { promise, resolve, reject } = Promise.withResolvers<Latencies>()
  worker.once('message', resolve)
  worker.once('error', reject)
  return promise
}

if (!isMainThread && parentPort !== null) parentPort.postMessage(await ask(workerData as Task))

async function ask({ port, perSecond, ms }: Task): Promise<Latencies> {
  using clients = new DisposableStack()
  const others = Array.from({ length: 50 }, (_, at) => clients.use(new Client(port, `127.0.1.${at + 1}`)))
  const acts: readonly ((client: Client) => Promise<Answer>)[] = [
    client => client.send('/users/1'),
    client => client.graphql('{ posts(limit: 3) { id title author { name } } }'),
    client => client.send(`/users/${1 + Math.floor(Math.random() * 1000)}`),
    client =>
      client.send('/payments', {
        method: 'POST',
        headers: { 'idempotency-key': `${Math.random()}` },
        body: { amount: 1 },
      }),
  ]
  const times: number[] = []
  let failed = 0
  const underway: Promise<void>[] = []
  const start = performance.now()
  for (let count = 0; (count * 1000) / perSecond < ms; count++) {
    // From the moment at which it was due: who is late has waited, too.
    const due = start + (count * 1000) / perSecond
    await delay(Math.max(0, due - performance.now()))
    const [act, client] = [acts[count % acts.length], others[count % others.length]]
    if (act === undefined || client === undefined) continue
    const done = act(client).then(
      ({ status }) => {
        times.push(performance.now() - due)
        if (status >= 300) failed++
      },
      () => void failed++,
    )
    underway.push(done)
  }
  await Promise.all(underway)
  times.sort((a, b) => a - b)
  const at = (part: number) => times[Math.min(times.length - 1, Math.floor(times.length * part))] ?? 0
  return { p50: at(0.5), p99: at(0.99), longest: at(1), failed }
}
