import { AsyncLocalStorage } from 'node:async_hooks'

/** What an operation can wait for. `client`: its body has not arrived yet, or its answer is not sent yet. */
const kinds = ['client', 'queue', 'connection', 'statement', 'commit', 'password', 'redis', 'parse', 'plan'] as const
export type Wait = (typeof kinds)[number]

/** What a wait was for: the name of a verb, or statements. */
export type Awaited = string | readonly { readonly text: string }[]

/** The span of an operation that is traced. */
export interface Span {
  /** As W3C Trace Context writes it. */
  readonly traceparent: string
  add(kind: Wait, since: number, until: number, what?: Awaited): void
  end(about: object, isFailure: boolean): void
}

/** Shorter waits make no operation slow, and most operations have no others, so these are not added up. */
const tooShortMs = 0.1

/** How long one operation has waited for what, in milliseconds. All times are those of `performance.now()`. */
export class Waits {
  readonly #begun = performance.now()
  /** In the order of `kinds`. */
  #ms: number[] | undefined
  #accountedMs = 0
  readonly span: Span | undefined
  /** When the answer was given to the connection. */
  answeredAt = Number.POSITIVE_INFINITY

  constructor(span?: Span) {
    this.span = span
  }

  add(kind: Wait, since: number, until = performance.now(), what?: Awaited): void {
    if (until - since < tooShortMs && this.span === undefined) return
    this.#ms ??= [0, 0, 0, 0, 0, 0, 0, 0, 0]
    const at = kinds.indexOf(kind)
    this.#ms[at] = (this.#ms[at] ?? 0) + until - since
    this.#accountedMs += until - since
    this.span?.add(kind, since, until, what)
  }

  /** The whole body has arrived. What nothing else accounts for was a wait for it. */
  arrived(): void {
    this.add('client', this.#begun + this.#accountedMs)
  }

  /** In whole milliseconds, without what took none. */
  told(): object {
    if (this.answeredAt < Number.POSITIVE_INFINITY) this.add('client', this.answeredAt)
    const rounded = kinds.map((kind, at) => [kind, Math.round(this.#ms?.[at] ?? 0)] as const)
    return Object.fromEntries(rounded.filter(([, ms]) => ms > 0))
  }
}

/**
 * The waits of the operation that runs now. Node keeps it along promises. To pass it on instead, every function of the
 * core and of the store would need one more parameter.
 */
const current = new AsyncLocalStorage<{ waits: Waits | undefined }>()

export const waitsNow = (): Waits | undefined => current.getStore()?.waits

/** Does the work of an operation; without `waits`, work that no operation waits for, even if one has started it. */
export function during<Outcome>(waits: Waits | undefined, work: () => Outcome): Outcome {
  return waits !== undefined && waits === waitsNow() ? work() : current.run({ waits }, work)
}

/**
 * For a connection whose operations run one after the other. All that Node calls for it later has one context, in which
 * `beginOperation` sets the waits. A context for each operation would take 3 % of the CPU of a small one.
 */
export function enterConnection(): void {
  current.enterWith({ waits: undefined })
}

/** From now on, these are the waits of what runs on this connection. */
export function beginOperation(waits: Waits | undefined): void {
  const store = current.getStore()
  if (store !== undefined) store.waits = waits
}

/** Records that the operation that runs now has waited. */
export function waited(kind: Wait, since: number, until?: number, what?: Awaited): void {
  waitsNow()?.add(kind, since, until, what)
}

export async function waiting<Outcome>(kind: Wait, promise: Promise<Outcome>): Promise<Outcome> {
  const since = performance.now()
  try {
    return await promise
  } finally {
    waited(kind, since)
  }
}
