import type { FastifyInstance, FastifyRequest } from 'fastify'
import { handOverNextBodies, ignoreBody } from './ignored-bodies.ts'

/**
 * Limits the costs of a body that do not depend on its size. A body in very many pieces is refused like one that is too large: each
 * piece takes memory and time of its own. A connection whose request was answered before its body has ended is closed
 * soon, so that a client cannot go on sending for nothing.
 */
export function boundBodies(server: FastifyInstance): void {
  handOverNextBodies(server.server)
  server.addHook('preParsing', (request, _reply, payload, next) => {
    if (mayHaveManyPieces(request)) {
      let pieces = 0
      payload.on('data', () => {
        // The parser compares this with the limit of the body's size.
        if (++pieces > mostPieces) payload.receivedEncodedLength = Number.POSITIVE_INFINITY
      })
    }
    next(null, payload)
  })
  server.addHook('onResponse', (request, _reply, next) => {
    if (!request.raw.complete && hasBody(request)) {
      ignoreBody(request.raw)
      closeSoon(request)
    }
    next()
  })
}

/** A body of known length has at most as many pieces as bytes. */
function mayHaveManyPieces({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? '0') > mostPieces
}

export function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

/** A client that is still sending may have to finish before it reads the answer. Closed at once, it might lose it. */
function closeSoon({ raw }: FastifyRequest): void {
  const close = () => {
    if (!raw.complete) raw.socket.destroy()
  }
  const timer = setTimeout(close, lateMs).unref()
  raw.once('close', () => clearTimeout(timer))
}

/** A mebibyte in packets of 256 bytes. */
export const mostPieces = 4096
/** How long the rest of a refused body may take. */
const lateMs = 3_000
