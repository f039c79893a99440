import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { Randomness } from '../core/ports.ts'
import { requestIdOf } from './logging.ts'
import { nodeHttp } from './node-http.ts'
import type { CountUnserved } from './rate-limit.ts'
import { answerOn, endsAfterAnswers, lingerMs } from './upgrades.ts'

/** The tools for responses to requests that never reach Fastify. */
export interface RawAnswers {
  readonly logger: FastifyBaseLogger
  readonly randomness: Randomness
  readonly count: CountUnserved
}

/** Answers requests that Node's HTTP parser refuses, in the same format as all errors, and closes the connection. */
export function answerParserError(error: Error & { code?: string }, socket: Socket, tools: RawAnswers): void {
  if (error.code !== 'ECONNRESET') tools.count({ socket, headers: {} })
  // The error response has been sent already; the client has `lingerMs` to read it.
  if (socket.writableEnded) return
  const current = answerOn(socket)
  // After a reset nobody reads. After the head of a response was sent, a second response would count as its body. A client
  // that sends its next request byte by byte, while it reads nothing, would keep the connection from timing out.
  const isLate = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' || !current?.req.complete
  if (error.code === 'ECONNRESET' || !socket.writable || (current?.headersSent && isLate)) {
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

/** `CONNECT` never becomes a request. By default Node closes the connection without a response. */
export function refuseTunnels(server: FastifyInstance, tools: RawAnswers): void {
  server.server.on('connect', ({ headers }, socket: Socket) => {
    tools.count({ socket, headers })
    socket.on('error', () => {}) // Node no longer handles this socket: an `error` event would end the process
    if (!endsAfterAnswers(socket)) answerRaw(socket, headers, 501, 'CONNECT is not supported', tools)
  })
}

function answerRaw(
  socket: Socket,
  headers: IncomingHttpHeaders | undefined,
  status: number,
  text: string,
  { logger, randomness }: RawAnswers,
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
  logger.info({ requestId, status }, text)
}
