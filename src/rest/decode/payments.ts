import { badInput } from '../../core/input.ts'
import { mostCents } from '../../core/payments/payment.ts'
import type { IdempotencyKey } from '../../core/store.ts'
import { fieldsOf } from './fields.ts'

/**
 * The amount of a payment's body in hundredths. Numbers of up to 10^12 with two decimals have one each, exactly. How an
 * amount is written does not matter, its value does: 1e2 and 1.100 are fine, as they need no more than two decimals.
 */
export function decodeCents(body: unknown): number {
  const { amount } = fieldsOf(body)
  const cents = typeof amount === 'number' ? Math.round(amount * 100) : Number.NaN
  if (cents >= 1 && cents <= mostCents && cents / 100 === amount) return cents
  throw badInput('amount must be a number above 0, at most 1000000000000, with at most two decimals')
}

/** A key belongs to the path that it was sent to. */
export function decodeKey(header: string | undefined, scope: string): IdempotencyKey | undefined {
  const key = keyIn(header)
  return key === undefined ? undefined : { scope, key }
}

export function decodeRequiredKey(header: string | undefined, scope: string): IdempotencyKey {
  const key = decodeKey(header, scope)
  if (key === undefined) throw badInput('Idempotency-Key header required')
  return key
}

/** What the header says, if it says anything: visible ASCII, with or without quotes around it. */
function keyIn(header: string | undefined): string | undefined {
  const key = header?.replace(/^"(.*)"$/, '$1')
  if (key === undefined || /^[ \t]*$/.test(key)) return undefined
  // Sent twice, it arrives as one with a comma and a blank in between, or at the end.
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw badInput('Idempotency-Key must be one value of 1 to 255 visible ASCII characters')
}
