import { askByFetch, type RawResponse } from '../support/http.ts'
import { keyHeader, paymentLinkOf } from '../support/rest.ts'
import { testTimeoutMs, waitUntil } from '../support/wait.ts'
import type { History, Intent } from './history.ts'

/** Sends one request and records the result. Returns undefined if there was no answer. */
export async function attempt(history: History, url: string, intent: Intent): Promise<RawResponse | undefined> {
  const { key, cents, orderId } = intent
  const note = history.invoke(intent)
  const common = { method: 'POST', signal: AbortSignal.timeout(testTimeoutMs) }
  const headers = { 'idempotency-key': key, 'content-type': 'application/json' }
  const [path, request, idIn] =
    orderId === null
      ? ['/payments', { headers, body: JSON.stringify({ amount: cents / 100 }) }, idInBody]
      : [`/orders/${orderId}/payment`, { headers: keyHeader(key) }, idInLink]
  const answer = await askByFetch(url + path, { ...common, ...request }).catch(() => undefined)
  if (answer === undefined) return undefined
  const { status } = answer
  note(status > 201 ? { kind: 'fail', status } : { kind: 'ok', status, id: idIn(answer) })
  return answer
}

const idInBody = ({ body }: RawResponse): number => JSON.parse(body).id
const idInLink = (answer: RawResponse) => Number(paymentLinkOf(answer).replace('/payments/', ''))

/** A client that repeats its request with the same key until it gets an answer. */
export async function payUntilAnswered(history: History, url: string, intent: Intent): Promise<void> {
  await waitUntil(async () => {
    await attempt(history, url, intent)
    return history.isSettled(intent)
  })
}

/** After a fault: repeats all payments with an unknown result until it is known. */
export async function resolveUnknowns(history: History, url: string): Promise<void> {
  await Promise.all(history.unsettled.map(intent => payUntilAnswered(history, url, intent)))
}

/** Repeats acknowledged payments, like a client that has lost its data. */
export async function repeatLatest(history: History, url: string, count: number): Promise<void> {
  await Promise.all(history.latest(count).map(intent => attempt(history, url, intent)))
}

/** Clients that pay until the end, each with one key until its payment is settled. `told` gets each answer and its time. */
export function startPaying(history: History, url: string, told: Told = () => {}): AsyncDisposable {
  let going = true
  const paying = runWorkers(16, async () => {
    for (let intent = history.intend(); going; ) {
      const started = performance.now()
      const answer = await attempt(history, url, intent)
      told(intent, answer, performance.now() - started)
      if (history.isSettled(intent)) intent = history.intend()
    }
  })
  const stop = async () => {
    going = false
    await paying
  }
  return { [Symbol.asyncDispose]: stop }
}

type Told = (intent: Intent, answer: RawResponse | undefined, ms: number) => void

/** Runs this many workers concurrently. */
export async function runWorkers(count: number, work: (worker: number) => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, worker) => work(worker)))
}
