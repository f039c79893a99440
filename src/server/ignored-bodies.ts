import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

/** What Node's parser calls has a number for its name. */
type Parser = { constructor: { readonly kOnBody: number } } & Record<number, unknown>
type ParsedSocket = Socket & { readonly parser?: Parser | null }

/**
 * Lets Node's parser skip the rest of a chunked body that nobody reads. That is several times as fast as handing over
 * each chunk, and a packet can hold ten thousand of them. It is still ten times as expensive as a body of known length,
 * and nothing slows the client down, so the connection is closed when the rest is too long.
 */
export function ignoreBody(request: IncomingMessage): void {
  const { complete, headers, socket } = request
  const { parser } = socket as ParsedSocket
  if (complete || headers['transfer-encoding'] === undefined || !parser) return
  const { kOnBody } = parser.constructor
  if (parser[kOnBody] === undefined) return // it is ignored already
  handOver ??= parser[kOnBody]
  parser[kOnBody] = undefined
  let left = mostIgnored
  const count = ({ length }: Buffer) => {
    left -= length
    if (left < 0 && !request.complete) socket.destroy()
  }
  socket.on('data', count)
  request.once('close', () => socket.off('data', count))
}

/** How many bytes of a body are skipped. */
export const mostIgnored = 1_048_576

/** The next request on a connection gets its body again, and so does the next user of the parser: Node keeps parsers. */
export function handOverNextBodies(server: Server): void {
  server.prependListener('request', ({ socket }) => restore((socket as ParsedSocket).parser))
  server.on('connection', (socket: ParsedSocket) => {
    const { parser } = socket
    socket.once('close', () => restore(parser))
  })
}

function restore(parser: Parser | null | undefined): void {
  if (parser && handOver !== undefined) parser[parser.constructor.kOnBody] = handOver
}

/** The same function for all parsers. */
let handOver: unknown
