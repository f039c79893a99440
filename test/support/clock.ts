import type { Clock } from '../../src/core/ports.ts'

/** A clock that stands still until a test moves it. */
export class TestClock implements Clock {
  #now: number

  constructor(now = Date.parse('2026-05-04T03:02:01.000Z')) {
    this.#now = now
  }

  now(): number {
    return this.#now
  }

  pass(milliseconds: number): void {
    this.#now += milliseconds
  }
}
