import { AppError } from './errors.ts'

/**
 * Single flight: when several callers ask for the same work at the same time, it runs once for all of them. If it fails
 * for a reason that concerns only the caller that started it, the next caller runs its own work. If the failure is an
 * outage or a defect, all callers get that error.
 */
export class SingleFlight<Outcome> {
  readonly #underway = new Map<string, Promise<Outcome>>()

  /** `isLeader` is true if the outcome is from this caller's own work. */
  async run(
    key: string,
    work: () => Promise<Outcome>,
  ): Promise<{ readonly outcome: Outcome; readonly isLeader: boolean }> {
    for (;;) {
      const flight = this.#underway.get(key)
      if (flight === undefined) return { outcome: await this.#lead(key, work), isLeader: true }
      try {
        return { outcome: await flight, isLeader: false }
      } catch (error) {
        if (concernsAll(error)) throw error
      }
    }
  }

  async #lead(key: string, work: () => Promise<Outcome>): Promise<Outcome> {
    const flight = work()
    this.#underway.set(key, flight)
    try {
      return await flight
    } finally {
      this.#underway.delete(key)
    }
  }
}

/** Whether the other callers would fail in the same way. */
function concernsAll(error: unknown): boolean {
  return !(error instanceof AppError) || error.code === 'unavailable' || error.code === 'fault'
}
