import type { Logger } from 'pino'

export interface LastResort {
  readonly logger: Logger
  /** Stops serving gracefully: accepts nothing new and finishes the requests in progress. */
  readonly stop: () => Promise<unknown>
  /** Flushes the log and ends the process. */
  readonly exit: (code: number) => void
  /** The timeout for stopping. */
  readonly timeoutMs: number
}

/**
 * Handles an uncaught error. The state of the process is unknown then, so it logs the error, lets the requests in
 * progress finish, and exits. It exits at once after a second such error, and after a timeout in any case.
 */
export function lastResort({ logger, stop, exit, timeoutMs }: LastResort): (error: unknown) => void {
  let stopping = false
  return error => {
    logger.fatal({ err: error }, stopping ? 'Another unhandled error: exiting' : 'Unhandled error: stopping')
    if (stopping) return exit(1)
    stopping = true
    setTimeout(() => exit(1), timeoutMs)
    stop().then(
      () => exit(1),
      () => exit(1),
    )
  }
}
