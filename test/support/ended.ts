import type { DuetProcess, Outcome } from './process.ts'
import { within } from './wait.ts'

/** Waits until a process has ended by itself, and returns its outcome. */
export function ended(duet: DuetProcess): Promise<Outcome> {
  return within(duet.outcome(), () => `the end of a process, which has printed ${duet.stdout}${duet.stderr}`)
}
