import type { History, Intent } from '../support/history.ts'
import { ask, type RawResponse } from '../support/http.ts'
import { testTimeoutMs, waitUntil } from '../support/wait.ts'

/** Asks once, and notes what came of it. No answer: nothing. */
export async function attempt(history: History, url: string, intent: Intent): Promise<RawResponse | undefined> {
  const { key, cents, orderId } = intent
  const noted = history.invoke(intent)
  const headers = { 'idempotency-key': key, ...(orderId === null && { 'content-type': 'application/json' }) }
  const body = orderId === null ? { body: JSON.stringify({ amount: cents / 100 }) } : {}
  const path = orderId === null ? '/payments' : `/orders/${orderId}/payment`
  const answer = await ask(url + path, {
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

/** Where the answer to the payment of an order leads. */
function paymentIn({ headers }: RawResponse): number {
  return Number(/^<\/payments\/(\d+)>; rel="payment"$/.exec(headers.get('link') ?? '')?.[1])
}

/** A client that does not give up: asks again, with the same key, until it knows. */
export async function insist(history: History, url: string, intent: Intent): Promise<void> {
  await waitUntil(async () => {
    await attempt(history, url, intent)
    return history.isSettled(intent)
  })
}

/** After a fault: everyone who does not know the outcome asks until they do. */
export async function settle(history: History, url: string): Promise<void> {
  await Promise.all(history.unsettled.map(intent => insist(history, url, intent)))
}

/** Asks again for what was acknowledged already, as a client does that lost its own notes. */
export async function repeatLatest(history: History, url: string, count: number): Promise<void> {
  await Promise.all(history.latest(count).map(intent => attempt(history, url, intent)))
}

/** So many hands at work at once. */
export async function hands(count: number, work: (hand: number) => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, hand) => work(hand)))
}
