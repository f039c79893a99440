import { badInput } from '../../core/input.ts'
import { mostCents } from '../../core/payments/payment.ts'
import type { IdempotencyKey } from '../../core/store.ts'
import { fieldsOf } from './fields.ts'

/**
 * The amount in the body of a payment, in hundredths. Every number of up to 10^12 with two decimals maps exactly to one
 * integer. Only the value of an amount matters, not its notation: 1e2 and 1.100 are valid, because they need at most
 * two decimals.
 */
export function decodeCents(body: unknown): number {
  const { amount } = fieldsOf(body)
  const cents = typeof amount === 'number' ? Math.round(amount * 100) : Number.NaN
  if (cents >= 1 && cents <= mostCents && cents / 100 === amount) return cents
  throw badInput('amount must be a number above 0, at most 1000000000000, with at most two decimals')
}

/** A key is valid only for the path that it is sent to. */
export function decodeKey(header: string | undefined, scope: string): IdempotencyKey | undefined {
  const key = keyIn(header)
  return key === undefined ? undefined : { scope, key }
}

export function decodeRequiredKey(header: string | undefined, scope: string): IdempotencyKey {
  const key = decodeKey(header, scope)
  if (key === undefined) throw badInput('Idempotency-Key header required')
  return key
}

/** The key in the header, if it is not empty: visible ASCII, with or without quotes. */
function keyIn(header: string | undefined): string | undefined {
  const key = header?.replace(/^"(.*)"$/, '$1')
  if (key === undefined || /^[ \t]*$/.test(key)) return undefined
  // If the header is sent twice, its values arrive joined by a comma and a space (at the end if one of them is empty).
  // This check rejects that.
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw badInput('Idempotency-Key must be one value of 1 to 255 visible ASCII characters')
}
