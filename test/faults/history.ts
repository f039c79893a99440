import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { sql } from '../../src/storage/sql.ts'
import { catalogue } from '../../src/storage/verbs.ts'
import { assertLedger } from '../rest/ledger.ts'
import type { TestDatabase } from '../support/engines.ts'
import { waitUntil } from '../support/wait.ts'

/**
 * A payment that must happen once, however often the client repeats it. Each has a different amount, so that the table
 * of payments shows which one it is, even if its key is lost.
 */
export interface Intent {
  readonly key: string
  readonly cents: number
  /** The order to pay, or null for a payment without an order. */
  readonly orderId: number | null
}

/** The result of one attempt for the client. `unknown`: there is no answer, or not yet. */
type Outcome =
  | { readonly kind: 'ok'; readonly status: number; readonly id: number }
  | { readonly kind: 'fail'; readonly status: number }
  | { readonly kind: 'unknown' }

/** The requests of the clients and their answers. */
export class History {
  readonly #attempts = new Map<Intent, Outcome[]>()
  readonly #amounts = new Set<number>()
  readonly #acknowledged = new Set<Intent>()

  /** A payment that was not requested yet. */
  intend({ cents = this.#amounts.size + 1, orderId = null }: Partial<Intent> = {}): Intent {
    assert.ok(!this.#amounts.has(cents), 'amounts must distinguish payments')
    this.#amounts.add(cents)
    const intent = { key: `key-${cents}`, cents, orderId }
    this.#attempts.set(intent, [])
    return intent
  }

  /** Notes an attempt before it is sent, because without an answer its result is unknown. Returns how to note the answer. */
  invoke(intent: Intent): (outcome: Outcome) => void {
    const outcomes = this.#of(intent)
    const index = outcomes.push({ kind: 'unknown' }) - 1
    return outcome => {
      outcomes[index] = outcome
      if (outcome.kind === 'ok') this.#acknowledged.add(intent)
    }
  }

  /** How many intents were acknowledged. */
  get acknowledged(): number {
    return this.#acknowledged.size
  }

  /** Waits until so many further ones are acknowledged. */
  async more(count: number): Promise<void> {
    const enough = this.acknowledged + count
    await waitUntil(() => this.acknowledged >= enough)
  }

  /** Whether it was answered with success or refusal. A 5xx is neither, and so is a missing answer. */
  isSettled(intent: Intent): boolean {
    return this.#acknowledged.has(intent) || isRefused(this.#of(intent))
  }

  /** Payments whose result the clients do not know. */
  get unsettled(): readonly Intent[] {
    return [...this.#attempts.keys()].filter(intent => !this.isSettled(intent))
  }

  /** The last acknowledged payments, this many. */
  latest(count: number): readonly Intent[] {
    return [...this.#acknowledged].slice(-count)
  }

  get entries(): Iterable<readonly [Intent, readonly Outcome[]]> {
    return this.#attempts
  }

  #of(intent: Intent): Outcome[] {
    return this.#attempts.get(intent) ?? assert.fail('the intent belongs to another history')
  }
}

export type Verdict = Awaited<ReturnType<typeof judgeOn>>

/**
 * Compares a history with the tables, after every client has its answer. The offences are lists of keys that break a
 * rule. If every payment has its key, the whole ledger must be consistent too.
 */
export async function judgeOn(database: TestDatabase, history: History) {
  await using engine = database.open(catalogue)
  const payments = await engine.read(sql`select id, amount_cents from payments order by id`)
  const stored = Map.groupBy(payments, ([, cents]) => cents)
  const claims = await engine.read(sql`select key, payment_id from idempotency_keys order by payment_id`)
  const keys = Map.groupBy(claims, ([key]) => key)
  const judged = [...history.entries].map(([intent, outcomes]) => {
    const acknowledgements = outcomes.filter(outcome => outcome.kind === 'ok')
    const created = acknowledgements.filter(({ status }) => status === 201).length
    const payments = (stored.get(intent.cents) ?? []).map(([id]) => id)
    const claims = (keys.get(intent.key) ?? []).map(([, paymentId]) => paymentId)
    return { ...intent, outcomes, acknowledgements, created, payments, claims }
  })
  const attempts = judged.flatMap(({ outcomes }) => outcomes)
  const keysOf = (offends: (one: (typeof judged)[number]) => boolean) => judged.filter(offends).map(({ key }) => key)
  const asked = new Set<unknown>(judged.map(({ cents }) => cents))
  const verdict = {
    acknowledged: judged.filter(({ acknowledgements }) => acknowledgements.length > 0).length,
    replays: attempts.filter(attempt => attempt.kind === 'ok' && attempt.status === 200).length,
    unknowns: attempts.filter(({ kind }) => kind === 'unknown').length,
    unavailable: attempts.filter(attempt => attempt.kind === 'fail' && attempt.status >= 500).length,
    offences: {
      /** Acknowledged, but not stored. */
      missing: keysOf(({ acknowledgements, payments }) => acknowledgements.length > 0 && payments.length === 0),
      double: keysOf(({ payments }) => payments.length > 1),
      /** Acknowledged with another id than the stored one. */
      wrongId: keysOf(({ acknowledgements, payments }) => acknowledgements.some(({ id }) => !payments.includes(id))),
      createdAgain: keysOf(({ created }) => created > 1),
      /** Acknowledged each time, but never as new (201). */
      neverCreated: keysOf(({ orderId, outcomes, acknowledgements: { length }, created }) => {
        return orderId === null && created === 0 && length > 0 && length === outcomes.length
      }),
      /** Not exactly one key refers to the payment. */
      keyless: keysOf(({ payments, claims }) => payments.length > 0 && String(claims) !== String(payments)),
      /** Refused, but paid. */
      uninvited: keysOf(({ outcomes, payments }) => isRefused(outcomes) && payments.length > 0),
      unsettled: history.unsettled.map(({ key }) => key),
      /** Amounts that were never requested. */
      strange: [...stored.keys()].filter(cents => !asked.has(cents)).map(String),
    },
  }
  if (verdict.offences.keyless.length === 0) await assertLedger(engine)
  return verdict
}

/**
 * Every key has exactly one payment, every acknowledged id is the stored one, and nothing acknowledged is missing. The
 * verdict is also printed, in one line.
 */
export async function assertSound(t: TestContext, database: TestDatabase, history: History): Promise<Verdict> {
  const verdict = await judgeOn(database, history)
  const { acknowledged, replays, unknowns, unavailable, offences } = verdict
  t.diagnostic(
    `${acknowledged} acknowledged, ${replays} replays, ${unknowns} unknown and ${unavailable} refused with 5xx retried, ` +
      `${offences.missing.length} missing, ${offences.double.length} double`,
  )
  for (const [offence, keys] of Object.entries(offences)) assert.deepEqual(keys, [], offence)
  return verdict
}

function isRefused(outcomes: readonly Outcome[]): boolean {
  const last = outcomes.at(-1)
  return last?.kind === 'fail' && last.status < 500 && outcomes.every(({ kind }) => kind !== 'ok')
}
