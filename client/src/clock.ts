/** Time and timers. Tests replace them. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Calls `run` later. Returns a function that cancels it. In Node a `background` timer does not keep the process alive. */
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

/** Milliseconds before the next attempt. They double each time, up to half a minute, with a random part for each client. */
export function backoff(failures: number): number {
  return Math.min(250 * 2 ** (failures - 1), 30_000) * (0.5 + Math.random() / 2)
}
