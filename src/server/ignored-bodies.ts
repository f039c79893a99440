import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

/** What Node's parser calls has a number for its name. */
type Parser = { constructor: { readonly kOnBody: number } } & Record<number, unknown>
type ParsedSocket = Socket & { readonly parser?: Parser | null }

/**
 * Lets Node's parser skip the rest of a chunked body that nobody reads. That is several times as fast as handing over
 * each chunk, and a packet can hold ten thousand of them.
 */
export function ignoreBody({ complete, headers, socket }: IncomingMessage): void {
  const { parser } = socket as ParsedSocket
  if (complete || headers['transfer-encoding'] === undefined || !parser) return
  handOver ??= parser[parser.constructor.kOnBody]
  parser[parser.constructor.kOnBody] = undefined
}

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
