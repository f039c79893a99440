import { type Access, invalidToken } from '../access.ts'
import type { Actor } from '../actor.ts'
import { type Condition, type Revised, unconditional, unmetCondition } from '../condition.ts'
import { AppError, isOutage } from '../errors.ts'
import type { Decode } from '../input.ts'
import { absentOrder } from '../orders/operations.ts'
import type { Order } from '../orders/order.ts'
import { type Page, type PageRequest, pageOf } from '../page.ts'
import type { Claim, IdempotencyKey, Paid, PaymentStore, Purpose } from '../store.ts'
import type { Payment } from './payment.ts'

export interface PaymentsParts {
  readonly store: PaymentStore
  readonly access: Access
  readonly keyTtlSeconds: number
}

/**
 * Executes a payment once per idempotency key. Concurrent requests with the same key in this process share one
 * execution, so they use only one database connection. Across processes and crashes the claim of the key decides; it is
 * written in the same transaction as the payment.
 */
export class Payments {
  readonly #parts: PaymentsParts
  /** The executions that are under way, by caller, scope and key. */
  readonly #underway = new Map<string, Promise<Paid>>()

  constructor(parts: PaymentsParts) {
    this.#parts = parts
  }

  /** Throws if the actor may not pay at all. This check needs no other part of the request. */
  checkAccess(actor: Actor, operation: 'make a payment' | 'pay an order'): void {
    this.#parts.access.reach(actor, operation)
  }

  async pay(actor: Actor, decodeKey: Decode<IdempotencyKey>, decodeCents: Decode<number>): Promise<Paid> {
    this.#parts.access.require(actor, 'make a payment')
    const claim = this.#claim(actor, decodeKey())
    return this.#once(claim, async () => {
      const known = await this.#parts.store.claimedPayment(claim)
      if (known !== undefined) return { payment: known, order: null, replayed: true }
      return this.#execute(actor, { cents: decodeCents() }, claim)
    })
  }

  async payOrder(
    actor: Actor,
    orderId: number | undefined,
    decodeKey: Decode<IdempotencyKey | undefined>,
    decodeCondition: Decode<Condition>,
  ): Promise<Paid & { readonly order: Order }> {
    const reach = this.#parts.access.reach(actor, 'pay an order')
    const key = decodeKey()
    const claim = key === undefined ? null : this.#claim(actor, key)
    const work = async () => {
      const condition = await this.#conditionOf(claim, decodeCondition)
      if (orderId === undefined) throw absentOrder()
      return this.#execute(actor, { orderId, reach, condition }, claim)
    }
    const { order, ...paid } = await (claim === null ? work() : this.#once(claim, work))
    if (order === null) throw absentOrder()
    return { order, ...paid }
  }

  /** Users who may not see the payments of everyone get those that they made. */
  async list(actor: Actor, decode: Decode<PageRequest>): Promise<Page<Payment>> {
    const reach = this.#parts.access.reach(actor, 'list payments')
    const request = decode()
    return pageOf(await this.#parts.store.listPayments(reach, request), request)
  }

  async read(actor: Actor, id: number | undefined): Promise<Revised<Payment>> {
    const reach = this.#parts.access.reach(actor, 'read a payment')
    const payment = id === undefined ? undefined : await this.#parts.store.readPayment(id, reach)
    if (payment === undefined) throw new AppError('not-found', 'Payment not found')
    return payment
  }

  /** A key that was used before has its replay whatever the condition is, so a malformed one is refused only without it. */
  async #conditionOf(claim: Claim | null, decode: Decode<Condition>): Promise<Condition> {
    try {
      return decode()
    } catch (error) {
      if (claim !== null && (await this.#parts.store.claimedPayment(claim)) !== undefined) return unconditional
      throw error
    }
  }

  #claim(actor: Actor, key: IdempotencyKey): Claim {
    return { ...key, callerId: actor.kind === 'user' ? actor.id : null, ttlSeconds: this.#parts.keyTtlSeconds }
  }

  /**
   * If the execution of another request fails for a reason that concerns only that one, this request has its own turn.
   * An outage or a defect concerns all that wait.
   */
  async #once({ callerId, scope, key }: Claim, work: () => Promise<Paid>): Promise<Paid> {
    const id = `${callerId} ${scope} ${key}`
    for (let other = this.#underway.get(id); other !== undefined; other = this.#underway.get(id)) {
      try {
        return { ...(await other), replayed: true }
      } catch (error) {
        if (isOutage(error) || !(error instanceof AppError) || error.code === 'fault') throw error
      }
    }
    const own = work()
    this.#underway.set(id, own)
    try {
      return await own // this one waits first, so the others no longer find it under way when they go on
    } finally {
      this.#underway.delete(id)
    }
  }

  async #execute(actor: Actor, purpose: Purpose, claim: Claim | null): Promise<Paid> {
    const outcome = await this.#parts.store.pay(actor, purpose, claim)
    if (outcome === 'order absent') throw absentOrder()
    if (outcome === 'order already paid') throw new AppError('conflict', 'Order is already paid')
    if (outcome === 'changed' || outcome === 'exists') throw unmetCondition('order', outcome)
    if (outcome === 'token revoked') throw invalidToken()
    return outcome
  }
}
