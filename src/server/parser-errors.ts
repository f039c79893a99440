import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Randomness } from '../core/ports.ts'

/** Answers what Node's HTTP parser refuses, in the same shape as every other failure, and ends the connection. */
export function answerParserError(error: Error & { code?: string }, socket: Socket, randomness: Randomness): void {
  const answering = socket as Socket & { _httpMessage?: ServerResponse }
  // After a reset nobody listens; after the head of an answer was sent, a second one would be taken for its body.
  if (error.code === 'ECONNRESET' || !socket.writable || answering._httpMessage?.headersSent) {
    socket.destroy()
    return
  }
  const [status, text] = refusals[error.code ?? ''] ?? [400, 'Malformed HTTP request']
  const body = JSON.stringify({ error: text })
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
      'content-type: application/json; charset=utf-8\r\n' +
      `content-length: ${Buffer.byteLength(body)}\r\n` +
      `x-request-id: ${randomness.id()}\r\n` +
      `connection: close\r\n\r\n${body}`,
  )
}

const refusals: Readonly<Record<string, readonly [number, string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'Request header fields are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'Chunk extensions are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request was not received in time'],
}

/** `Expect` other than `100-continue`: Node would answer 417 without a body. */
export function answerExpectations(server: Server): void {
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    response.writeHead(417, { 'content-type': 'application/json; charset=utf-8', connection: 'close' })
    response.end('{"error":"Expectation failed"}')
  })
}
