import { AppError } from './errors.ts'

/**
 * Does work that several ask for at the same time once, for all of them. Where it failed for a reason that lies with who
 * asked, the next one tries for itself; where it could not be done, nobody else needs to try.
 */
export class Flights<Outcome> {
  readonly #underway = new Map<string, Promise<Outcome>>()

  /** `led` tells whether the outcome is that of one's own work. */
  async join(key: string, work: () => Promise<Outcome>): Promise<{ readonly outcome: Outcome; readonly led: boolean }> {
    for (;;) {
      const flight = this.#underway.get(key)
      if (flight === undefined) return { outcome: await this.#lead(key, work), led: true }
      try {
        return { outcome: await flight, led: false }
      } catch (error) {
        if (isOutage(error)) throw error
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

function isOutage(error: unknown): boolean {
  return !(error instanceof AppError) || error.code === 'unavailable' || error.code === 'fault'
}
