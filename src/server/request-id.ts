import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { Randomness } from '../core/ports.ts'

/** The request id that the client sent if it is safe to log and return, otherwise a new one. */
export function requestIdOf(headers: IncomingHttpHeaders | undefined, randomness: Randomness): string {
  const id = headers?.['x-request-id']
  return typeof id === 'string' && /^[\w.:-]{1,128}$/.test(id) ? id : randomness.id()
}

/** The fields that identify the request in every log line. */
export function traceOf({ id, headers }: FastifyRequest): { requestId: string; traceparent?: string } {
  const traceparent = traceparentOf(headers)
  return traceparent === undefined ? { requestId: id } : { requestId: id, traceparent }
}

/** The W3C Trace Context header, version 00, if it is well formed. */
function traceparentOf({ traceparent }: IncomingHttpHeaders): string | undefined {
  return typeof traceparent === 'string' && /^00-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/.test(traceparent)
    ? traceparent
    : undefined
}
