import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Randomness } from '../core/ports.ts'
import { nodeHttp } from '../lib/node-http.ts'
import type { TrustedProxies } from './client-address.ts'
import { sendError } from './errors.ts'
import { requestIdOf } from './logging.ts'
import type { CountUnserved } from './rate-limit.ts'
import type { RequestLog } from './request-log.ts'
import { answerOn, endsAfterAnswers, lingerMs } from './upgrades.ts'

/** The tools for responses to requests that never reach Fastify. */
interface RawAnswers {
  readonly requestLog: RequestLog
  readonly proxies: TrustedProxies
  readonly randomness: Randomness
  readonly count: CountUnserved
}

/**
 * Refuses requests whose headers Node's parser accepts although a proxy in front of us may interpret them
 * differently, and requests whose `Expect` header we cannot satisfy. It closes the connection, because nobody can be
 * sure where such a request ends.
 */
export function refuseMalformed(server: FastifyInstance, tools: RawAnswers): void {
  server.addHook('onRequest', ({ raw }, reply, next) => {
    const problem = problemOf(raw.headers, raw.httpVersion)
    if (problem === undefined) return next()
    sendError(reply.header('connection', 'close'), problem[0], problem[1])
  })
  // By default Node answers 417 itself, without a body. With this listener the hook above answers.
  server.server.on('checkExpectation', (request: IncomingMessage, response) => {
    server.server.emit('request', request, response)
  })
  // `CONNECT` never becomes a request. By default Node closes the connection without a response.
  server.server.on('connect', ({ headers }, socket: Socket) => {
    tools.count({ socket, headers })
    socket.on('error', () => {}) // Node no longer handles this socket: an `error` event would end the process
    if (!endsAfterAnswers(socket)) answerRaw(socket, headers, 501, 'CONNECT is not supported', tools)
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

/** Answers requests that Node's HTTP parser refuses, in the same format as all errors, and closes the connection. */
export function answerParserError(error: Error & { code?: string }, socket: Socket, tools: RawAnswers): void {
  if (error.code !== 'ECONNRESET') tools.count({ socket, headers: {} })
  // The error response has been sent already; the client has `lingerMs` to read it.
  if (socket.writableEnded) return
  const current = answerOn(socket)
  // After a reset nobody reads. After the head of a response was sent, a second response would count as its body.
  if (error.code === 'ECONNRESET' || !socket.writable || (current?.headersSent && !current.req.complete)) {
    socket.destroy()
  } else if (current?.req.complete) {
    // The malformed data came after this request, which must still get its own response.
    current.shouldKeepAlive = false
    current.once('close', () => socket.destroySoon())
  } else {
    const [status, text] = parserErrors[error.code ?? ''] ?? [400, 'Malformed HTTP request']
    answerRaw(socket, current?.req.headers, status, text, tools)
  }
}

const parserErrors: Readonly<Record<string, readonly [status: number, text: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'Request header fields are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'Chunk extensions are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request was not received in time'],
}

function answerRaw(
  socket: Socket,
  headers: IncomingHttpHeaders | undefined,
  status: number,
  text: string,
  { requestLog, proxies, randomness }: RawAnswers,
): void {
  const requestId = requestIdOf(headers, randomness)
  const body = JSON.stringify({ error: text })
  socket.end(
    `HTTP/1.1 ${status} ${nodeHttp.STATUS_CODES[status]}\r\n` +
      'content-type: application/json; charset=utf-8\r\n' +
      `content-length: ${Buffer.byteLength(body)}\r\n` +
      'cache-control: no-store\r\n' +
      `x-request-id: ${requestId}\r\n` +
      `connection: close\r\n\r\n${body}`,
  )
  const linger = setTimeout(() => socket.destroy(), lingerMs).unref()
  socket.once('close', () => clearTimeout(linger))
  const client = proxies.keyOf({ socket, headers: headers ?? {} })
  requestLog.tell(text, 0, undefined, status >= 500 ? 'failure' : 'usual', () => ({ requestId, client, status }))
}
