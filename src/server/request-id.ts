import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { Randomness } from '../core/ports.ts'

/** The id that a request brought along, when it is fit to be logged and sent back, else a new one. */
export function requestIdOf(headers: IncomingHttpHeaders | undefined, randomness: Randomness): string {
  const id = headers?.['x-request-id']
  return typeof id === 'string' && /^[\w.:-]{1,128}$/.test(id) ? id : randomness.id()
}

/** What every line of the log says about the request it is about. */
export function traceOf({ id, headers }: FastifyRequest): { requestId: string; traceparent?: string } {
  const traceparent = traceparentOf(headers)
  return traceparent === undefined ? { requestId: id } : { requestId: id, traceparent }
}

/** W3C Trace Context, version 00, when it is well formed. */
function traceparentOf({ traceparent }: IncomingHttpHeaders): string | undefined {
  return typeof traceparent === 'string' && /^00-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/.test(traceparent)
    ? traceparent
    : undefined
}
