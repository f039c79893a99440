/** Runs short, synchronous work of one thread at a time. Its state is one cell of memory that the threads share. */
export class SharedLock {
  readonly #cells: Int32Array
  readonly #cell: number
  readonly #owner: number

  /** `owner`: a number from 1 on that no other thread uses. */
  constructor(cells: Int32Array, cell: number, owner: number) {
    this.#cells = cells
    this.#cell = cell
    this.#owner = owner
  }

  take(): void {
    for (let tries = 0; Atomics.compareExchange(this.#cells, this.#cell, 0, this.#owner) !== 0; tries++) {
      // The work takes less than a microsecond, unless the system has stopped its thread in the middle of it.
      if (tries > spins) Atomics.wait(sleeping, 0, 0, pauseMs)
    }
  }

  release(): void {
    Atomics.store(this.#cells, this.#cell, 0)
  }

  /** Releases the lock if a thread has ended while it had it. */
  releaseFor(owner: number): void {
    Atomics.compareExchange(this.#cells, this.#cell, owner, 0)
  }
}

const spins = 200
const pauseMs = 0.05
/** Nobody notifies this cell: waiting for it is a pause. */
const sleeping = new Int32Array(new SharedArrayBuffer(4))
