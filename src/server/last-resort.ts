import type { Logger } from 'pino'

export interface LastResort {
  readonly logger: Logger
  /** Stops serving in order: nothing new is accepted, what is under way is finished. */
  readonly stop: () => Promise<unknown>
  /** Ends the process, with what is logged written out. */
  readonly exit: (code: number) => void
  /** How long stopping may take. */
  readonly patienceMs: number
}

/**
 * What to do about an error that nobody has handled: the process is in a state that nobody has thought of, so it says
 * so, lets requests that are under way end, and is gone. It does not wait for ever, nor after a second such error.
 */
export function lastResort({ logger, stop, exit, patienceMs }: LastResort): (error: unknown) => void {
  let stopping = false
  return error => {
    logger.fatal({ err: error }, stopping ? 'Another unhandled error: exiting' : 'Unhandled error: stopping')
    if (stopping) return exit(1)
    stopping = true
    setTimeout(() => exit(1), patienceMs)
    stop().then(
      () => exit(1),
      () => exit(1),
    )
  }
}
