/** Time and timers, so that tests can hold them. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Runs something later. Returns the function that prevents it. In Node a `background` timer does not keep the process. */
  after(milliseconds: number, run: () => void, background?: boolean): () => void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after(milliseconds, run, background = false) {
    const timer: unknown = setTimeout(run, milliseconds)
    if (background) (timer as { unref?: () => void }).unref?.()
    return () => clearTimeout(timer as Parameters<typeof clearTimeout>[0])
  },
}

/** Milliseconds before the next attempt: twice as many each time, up to half a minute, and each client at its own moment. */
export function backoff(failures: number): number {
  return Math.min(250 * 2 ** (failures - 1), 30_000) * (0.5 + Math.random() / 2)
}
