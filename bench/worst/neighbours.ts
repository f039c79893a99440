import { setTimeout as delay } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { Client } from '../client.ts'

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

/** Ordinary requests from other addresses, so many a second, in a thread of their own. */
export async function neighbours(task: Task): Promise<Latencies> {
  const worker = new Worker(new URL(import.meta.url), { workerData: task })
  const { promise, resolve, reject } = Promise.withResolvers<Latencies>()
  worker.once('message', resolve)
  worker.once('error', reject)
  return promise
}

if (!isMainThread && parentPort !== null) parentPort.postMessage(await ask(workerData as Task))

async function ask({ port, perSecond, ms }: Task): Promise<Latencies> {
  using client = new Client(port, '127.0.0.2')
  const acts = [
    () => client.send('/users/1'),
    () => client.graphql('{ posts(limit: 3) { id title author { name } } }'),
    () => client.send(`/users/${1 + Math.floor(Math.random() * 1000)}`),
    () =>
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
    const act = acts[count % acts.length]
    if (act === undefined) continue
    const done = act().then(
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
