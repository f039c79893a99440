import { within } from '../support/wait.ts'
import type { Ends, Wire } from './wire.ts'

/**
 * A proxy between an instance and PostgreSQL that recognises the sequencer of events. Between its statements and its
 * COMMIT it holds the row lock of `event_head`, and there the proxy can stop it.
 */
export class SequencerWire {
  /** The name under which a connection has prepared the statement that locks the row. */
  readonly #names = new WeakMap<Ends, string>()
  readonly #sequencing = new WeakSet<Ends>()
  #hold: (() => void) | undefined
  /** How many transactions of the sequencer have sent their COMMIT. */
  sequenced = 0

  constructor(wire: Wire) {
    wire.fromClient = (data, ends) => this.#decide(data, ends)
  }

  /** Keeps the next COMMIT of the sequencer back, for ever. Settles when PostgreSQL waits for it. */
  holdNext(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#hold = resolve
    return within(promise, 'a COMMIT of the sequencer')
  }

  #decide(data: Buffer, ends: Ends): 'pass' | 'keep' {
    const text = data.toString('latin1')
    if (this.#sequencing.delete(ends) && text.includes('commit\0')) {
      this.sequenced++
      if (this.#hold === undefined) return 'pass'
      this.#hold()
      this.#hold = undefined
      return 'keep'
    }
    const parsed = lockingStatement.exec(text)
    const name = parsed?.[1] || this.#names.get(ends)
    if (name !== undefined) this.#names.set(ends, name)
    if (parsed !== null || (name !== undefined && text.includes(`\0${name}\0`))) this.#sequencing.add(ends)
    return 'pass'
  }
}

const lockingStatement = /(\w*)\0select position from event_head for update/
