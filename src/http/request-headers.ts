import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { sendError } from './errors.ts'

/**
 * Refuses requests whose headers Node's parser accepts although a proxy in front of us may interpret them
 * differently, and requests whose `Expect` header we cannot satisfy. It closes the connection, because nobody can be
 * sure where such a request ends.
 */
export function refuseAmbiguousHeaders(server: FastifyInstance): void {
  server.addHook('onRequest', ({ raw }, reply, next) => {
    const problem = problemOf(raw.headers, raw.httpVersion)
    if (problem === undefined) return next()
    sendError(reply.header('connection', 'close'), problem[0], problem[1])
  })
  // By default Node answers 417 itself, without a body. With this listener the hook above answers.
  server.server.on('checkExpectation', (request: IncomingMessage, response) => {
    server.server.emit('request', request, response)
  })
}

function problemOf(headers: IncomingHttpHeaders, version: string): readonly [number, string] | undefined {
  const { host, expect, 'transfer-encoding': coding } = headers
  if (version !== '1.1' && version !== '1.0') return [505, 'HTTP version is not supported']
  if (host === undefined ? version === '1.1' : host.includes(',')) return [400, 'One Host header required']
  if (coding !== undefined && (version === '1.0' || coding.toLowerCase() !== 'chunked'))
    return [400, 'Transfer-Encoding must be chunked']
  if (expect !== undefined && !/^100-continue$/i.test(expect)) return [417, 'Expectation cannot be met']
  return undefined
}
