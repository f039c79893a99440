import { useSignal } from '@preact/signals'
import { type Problem, problemOf } from '../state/problems.ts'
import { withSession } from '../state/session.ts'

export interface Action {
  readonly busy: boolean
  readonly problem: Problem | undefined
  /** Runs `work`, after a new sign-in if the session has ended. Returns whether it succeeded. */
  run(work: () => Promise<unknown>): Promise<boolean>
  /** Repeats the work that failed. */
  again(): void
  clear(): void
}

/** An action that the user started: whether it is running, and its error. */
export function useAction(): Action {
  const busy = useSignal(false)
  const problem = useSignal<Problem | undefined>(undefined)
  const latest = useSignal<() => Promise<unknown>>(() => Promise.resolve())
  const run = async (work: () => Promise<unknown>) => {
    if (busy.peek()) return false
    latest.value = work
    busy.value = true
    try {
      await withSession(work)
      problem.value = undefined
      return true
    } catch (error) {
      problem.value = problemOf(error)
      return false
    } finally {
      busy.value = false
    }
  }
  return {
    busy: busy.value,
    problem: problem.value,
    run,
    again: () => run(latest.peek()),
    clear: () => {
      problem.value = undefined
    },
  }
}
