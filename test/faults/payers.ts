import { askByFetch, type RawResponse } from '../support/http.ts'
import { testTimeoutMs, waitUntil } from '../support/wait.ts'
import type { History, Intent } from './history.ts'

/** Sends one request and records the result. Returns undefined if there was no answer. */
export async function attempt(history: History, url: string, intent: Intent): Promise<RawResponse | undefined> {
  const { key, cents, orderId } = intent
  const noted = history.invoke(intent)
  const headers = { 'idempotency-key': key, ...(orderId === null && { 'content-type': 'application/json' }) }
  const body = orderId === null ? { body: JSON.stringify({ amount: cents / 100 }) } : {}
  const path = orderId === null ? '/payments' : `/orders/${orderId}/payment`
  const answer = await askByFetch(url + path, {
    method: 'POST',
    headers,
    ...body,
    signal: AbortSignal.timeout(testTimeoutMs),
  }).catch(() => undefined)
  if (answer === undefined) return undefined
  if (answer.status > 201) noted.fail(answer.status)
  else noted.ok(answer.status, orderId === null ? JSON.parse(answer.body).id : paymentIn(answer))
  return answer
}

/** The link to the payment in the answer to the payment of an order. */
function paymentIn({ headers }: RawResponse): number {
  return Number(/^<\/payments\/(\d+)>; rel="payment"$/.exec(headers.get('link') ?? '')?.[1])
}

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

/** Runs this many workers concurrently. */
export async function runWorkers(count: number, work: (worker: number) => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, worker) => work(worker)))
}
