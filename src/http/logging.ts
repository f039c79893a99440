import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { type DestinationStream, type Logger, pino } from 'pino'
import { AppError } from '../core/errors.ts'
import type { Randomness } from '../core/ports.ts'
import { within } from '../lib/within.ts'

/** Structured logs, one JSON object per line. Headers, bodies and query strings hold secrets and are never logged. */
export function createLogger(level: string, destination: DestinationStream): Logger {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err: error => describe(error) } },
    destination,
  )
}

/** Standard output, written without blocking. The buffer is bounded in case nobody reads it. */
export function standardOutput() {
  // With a minimum of 0, `flush` would not wait.
  const output = pino.destination({ dest: 1, sync: false, minLength: 1, maxLength: 4 * 1024 * 1024 })
  output.on('error', () => {}) // the reader is gone; the service continues
  return {
    write: (line: string) => output.write(line),
    /** Waits until all is written, or for half a second, so that the process can end though nobody reads. */
    async finish() {
      // Not `flushSync`: it does not wait for the write in progress, so lines would change places.
      const written = new Promise(resolve => output.flush(resolve))
      await within(written, 500, 'Nobody reads the log').catch(() => {})
      output.destroy() // otherwise pino writes once more when the process exits
    },
  }
}

/** Limits for the message, the stack, and the depth of causes, because an error may quote any data. */
const longest = { message: 1_000, stack: 4_000, causes: 4 }

// Only named fields are logged: the errors of database drivers have further fields that quote data.
function describe(error: unknown, causes = longest.causes): object {
  if (!(error instanceof Error)) {
    // An object may have no `toString`, or one that throws.
    const text = typeof error === 'object' ? Object.prototype.toString.call(error) : String(error)
    return { type: typeof error, message: shortened(text, longest.message) }
  }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  return {
    type: error.name,
    message: shortened(error.message, longest.message),
    ...(code !== undefined && { code }),
    ...(error.stack !== undefined && !(error instanceof AppError) && { stack: shortened(error.stack, longest.stack) }),
    ...(error.cause !== undefined && causes > 0 && { cause: describe(error.cause, causes - 1) }),
  }
}

function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}…`
}

/** The request id that the client sent if it is safe to log and return, otherwise a new one. */
export function requestIdOf(headers: IncomingHttpHeaders | undefined, randomness: Randomness): string {
  const id = headers?.['x-request-id']
  return typeof id === 'string' && /^[\w.:-]{1,128}$/.test(id) ? id : randomness.id()
}

/** The fields that identify the request in every log line. */
export function traceOf({ id, waits, headers }: FastifyRequest): object {
  const traceparent = waits?.span?.traceparent ?? traceparentIn(headers.traceparent)
  return traceparent === undefined ? { requestId: id } : { requestId: id, traceparent }
}

/** A header of W3C Trace Context, version 00, if it is well formed. */
export function traceparentIn(given: unknown): string | undefined {
  return typeof given === 'string' && traceContext.test(given) ? given : undefined
}

const traceContext = /^00-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/
