import { unlessAborted } from './abort.ts'
import { backoff, type Clock } from './clock.ts'
import type { Duet } from './connect.ts'
import { DuetError } from './errors.ts'
import { type Answer, type CallOptions, isReplay } from './http.ts'
import { internalsOf } from './internals.ts'
import type { PaymentOptions, PaymentOutcome } from './payments.ts'

/** Sends a request with one Idempotency-Key until it has a final answer, with a limited number of attempts. */
export async function underOneKey<Body>(
  duet: Duet,
  method: string,
  target: string | URL,
  { key = newKey(), signal, body, headers: more }: PaymentOptions & Pick<CallOptions, 'body' | 'headers'>,
): Promise<PaymentOutcome & { readonly answer: Answer<Body> }> {
  const { clock } = internalsOf(duet)
  const payer = duet.session?.userId
  const headers = { ...more, 'idempotency-key': key }
  for (let attempts = 1; ; attempts++) {
    try {
      const answer = await duet.request<Body>(method, target, {
        body,
        headers,
        signal,
        expect: 'json',
        attempt: attempts,
      })
      return { answer, key, replayed: isReplay(answer), attempts }
    } catch (error) {
      if (!(error instanceof DuetError)) throw error
      const pause = attempts < mostAttempts ? pauseAfter(error, attempts) : undefined
      if (pause === undefined) throw withKey(error, key)
      await sleep(clock, pause, signal)
      // Keys belong to their caller. The same key of another user would pay a second time.
      if (duet.session?.userId !== payer) throw withKey(error, key)
    }
  }
}

const mostAttempts = 6
/** After a longer `retryAfter` the application decides, not the client. */
const longestPauseMs = 20_000

/** How long to wait before the next attempt, or `undefined` if another attempt cannot help. */
function pauseAfter({ kind, status, retryAfter = 0 }: DuetError, attempts: number): number | undefined {
  const mayPass = kind === 'rateLimited' || (kind === 'server' && status !== undefined)
  if (kind !== 'offline' && !mayPass) return undefined
  const pause = retryAfter * 1000 + backoff(attempts)
  return pause <= longestPauseMs ? pause : undefined
}

function withKey(error: DuetError, key: string): DuetError {
  return new DuetError(error.kind, error.message, { ...error, key, cause: error })
}

/** `crypto.randomUUID` is missing in pages that were not loaded over https. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('')
}

function sleep(clock: Clock, milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  let cancel = () => {}
  const over = new Promise<void>(resolve => {
    cancel = clock.after(milliseconds, resolve)
  })
  return unlessAborted(over, signal).finally(cancel)
}
