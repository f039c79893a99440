import { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { Randomness } from '../core/ports.ts'
import { requestIdOf } from './request-id.ts'

/** What answers to requests that never reach Fastify need of it. */
export interface RawAnswers {
  readonly logger: FastifyBaseLogger
  readonly randomness: Randomness
}

/** Answers what Node's HTTP parser refuses, in the same shape as every other failure, and ends the connection. */
export function answerParserError(error: Error & { code?: string }, socket: Socket, tools: RawAnswers): void {
  // Of an answer that was sent already; the client has `lingerMs` to read it.
  if (socket.writableEnded) return
  const current = (socket as Socket & { _httpMessage?: ServerResponse<IncomingMessage> | null })._httpMessage
  // After a reset nobody listens; after the head of an answer was sent, a second one would be taken for its body.
  if (error.code === 'ECONNRESET' || !socket.writable || (current?.headersSent && !current.req.complete)) {
    socket.destroy()
  } else if (current?.req.complete) {
    // What is malformed came after this request, which deserves its own answer.
    current.shouldKeepAlive = false
    current.once('close', () => socket.destroySoon())
  } else {
    const [status, text] = refusals[error.code ?? ''] ?? [400, 'Malformed HTTP request']
    answerRaw(socket, current?.req.headers, status, text, tools)
  }
}

const refusals: Readonly<Record<string, readonly [status: number, text: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'Request header fields are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'Chunk extensions are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request was not received in time'],
}

/** `CONNECT` never becomes a request: Node would close the connection without a word. */
export function refuseTunnels(server: FastifyInstance, tools: RawAnswers): void {
  server.server.on('connect', ({ headers }, socket: Socket) => {
    socket.on('error', () => {}) // Node has let go of the socket: an error of it would end the process
    answerRaw(socket, headers, 501, 'CONNECT is not supported', tools)
  })
}

/** How long a refused client that is still sending may read our answer before its connection is cut. */
const lingerMs = 1_000

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
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
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
