import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { away, online } from '../state/connection.ts'
import { type Problem, problemOf } from '../state/problems.ts'
import { visits, withSession } from '../state/session.ts'

export interface Action {
  readonly busy: boolean
  readonly problem: Problem | undefined
  /** Runs `work`, after a new sign-in if the session has ended. Returns whether it succeeded. */
  run(work: () => Promise<unknown>): Promise<boolean>
  /** Repeats the work that failed. */
  again(): void
  clear(): void
}

/**
 * An action that the user started: whether it is running, and its error. `anonymous`: it needs no session, so that
 * nobody is asked to sign in again for it.
 */
export function useAction({ anonymous = false } = {}): Action {
  const busy = useSignal(false)
  const problem = useSignal<Problem | undefined>(undefined)
  const latest = useSignal<() => Promise<unknown>>(() => Promise.resolve())
  const run = async (work: () => Promise<unknown>) => {
    if (busy.peek()) return false
    latest.value = work
    busy.value = true
    try {
      await (anonymous ? work() : withSession(work))
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

export interface Reading {
  readonly busy: boolean
  readonly problem: Problem | undefined
  /** Reads, after a new sign-in if the session has ended, and shows the result unless a newer read or the visit of another user has begun. */
  run<Result>(read: () => Promise<Result>, show: (result: Result) => void): Promise<void>
  /** Repeats the newest read. */
  again(): void
}

/**
 * Reads that replace each other: the newest one is shown, whichever answer arrives last. One that got no answer is
 * repeated as soon as the service can be reached again.
 */
export function useReading(): Reading {
  const busy = useSignal(false)
  const problem = useSignal<Problem | undefined>(undefined)
  const newest = useSignal<() => Promise<void>>(() => Promise.resolve())
  const run = async <Result,>(read: () => Promise<Result>, show: (result: Result) => void) => {
    const repeat = () => run(read, show)
    const visit = visits.peek()
    const isNewest = () => newest.peek() === repeat && visits.peek() === visit
    newest.value = repeat
    busy.value = true
    try {
      const result = await withSession(read)
      if (!isNewest()) return
      problem.value = undefined
      show(result)
    } catch (error) {
      if (isNewest()) problem.value = problemOf(error)
    } finally {
      if (isNewest()) busy.value = false
    }
  }
  useEffect(
    () => () => {
      newest.value = () => Promise.resolve() // an answer that arrives after the view was left is not shown
    },
    [],
  )
  const isBack = online.value && !away.value
  useEffect(() => {
    if (isBack && problem.peek()?.kind === 'offline') newest.peek()()
  }, [isBack])
  return { busy: busy.value, problem: problem.value, run, again: () => void newest.peek()() }
}
