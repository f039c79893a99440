import { within } from '../support/wait.ts'
import { type Ends, Wire } from './wire.ts'

/**
 * A proxy between an instance and PostgreSQL that recognises the sequencer of events. Between its statements and its
 * COMMIT it holds the row lock of `event_head`, and there the proxy can stop it.
 */
export class SequencerWire implements AsyncDisposable {
  readonly #wire: Wire
  readonly #isWithoutLock: boolean
  /** The name under which a connection has prepared the statement that locks the row. */
  readonly #names = new WeakMap<Ends, string>()
  readonly #sequencing = new WeakSet<Ends>()
  #hold: (() => void) | undefined
  /** How many transactions of the sequencer have sent their COMMIT. */
  sequenced = 0

  /** `isWithoutLock`: the sequencer reads the row and does not lock it. */
  static async to(url: URL, isWithoutLock: boolean): Promise<SequencerWire> {
    return new SequencerWire(await Wire.to(url), isWithoutLock)
  }

  private constructor(wire: Wire, isWithoutLock: boolean) {
    this.#wire = wire
    this.#isWithoutLock = isWithoutLock
    wire.fromClient = (data, ends) => this.#decide(data, ends)
  }

  through(address: string): string {
    return this.#wire.through(address)
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
    if (parsed !== null && this.#isWithoutLock)
      data.fill(' ', parsed.index + parsed[0].length - lock.length, parsed.index + parsed[0].length)
    return 'pass'
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#wire[Symbol.asyncDispose]()
  }
}

const lock = 'for update'
const lockingStatement = new RegExp(`(\\w*)\\0select position from event_head ${lock}`)
