import type { RedisConnection } from './redis-connection.ts'

/** Gets the count and the milliseconds until it expires, or nothing if Redis has not answered. */
export type OnCount = (count: number | undefined, leftMs: number) => void

interface Change {
  amount: number
  readonly windowMs: number
  readonly waiting: OnCount[]
}

interface Batch {
  readonly keys: string[]
  readonly changes: Change[]
  /** The last change of each key. */
  readonly last: Map<string, Change>
}

/** Counters in Redis. All changes of one turn of the event loop travel together, those of one key as one. */
export class RedisCounters {
  readonly #connection: RedisConnection
  #next: Batch | undefined

  constructor(connection: RedisConnection) {
    this.#connection = connection
  }

  /** Whether it is worth asking. */
  get up(): boolean {
    return this.#connection.up
  }

  /** Adds 1 or -1 to a counter. A new counter expires after `windowMs`. */
  add(key: string, amount: 1 | -1, windowMs: number, onCount: OnCount): void {
    const batch = this.#batch()
    const last = batch.last.get(key)
    // Takes and give-backs keep their order.
    if (last !== undefined && last.amount > 0 === amount > 0) {
      last.amount += amount
      last.waiting.push(onCount)
      return
    }
    const change = { amount, windowMs, waiting: [onCount] }
    batch.keys.push(key)
    batch.changes.push(change)
    batch.last.set(key, change)
  }

  #batch(): Batch {
    if (this.#next === undefined || this.#next.keys.length >= mostKeys) {
      const batch: Batch = { keys: [], changes: [], last: new Map() }
      this.#next = batch
      setImmediate(() => this.#send(batch))
    }
    return this.#next
  }

  #send(batch: Batch): void {
    if (this.#next === batch) this.#next = undefined
    const values: number[] = []
    for (const { amount, windowMs } of batch.changes) values.push(amount, windowMs)
    this.#connection.count(batch.keys, values, result => {
      for (const [index, change] of batch.changes.entries()) {
        tell(change, result?.[2 * index], result?.[2 * index + 1] ?? 0)
      }
    })
  }
}

/** Those who took together get one number each, in their order. */
function tell({ amount, waiting }: Change, count: number | undefined, leftMs: number): void {
  for (const [index, onCount] of waiting.entries()) {
    onCount(count === undefined || amount < 0 ? count : count - amount + 1 + index, leftMs)
  }
}

/** Redis does nothing else while it runs a script. */
const mostKeys = 1_000
