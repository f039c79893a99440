import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { AppError } from '../core/errors.ts'
import { encode, release } from '../lib/v8.ts'
import { dropHeadersOfHandler } from './errors.ts'

/** Answers and messages of at least this size are large. Smaller ones are bounded by the number of connections. */
export const largeBytes = 64 * 1024
/** Bytes that may wait for clients, over all threads. */
export const mostUnread = 256 * 1024 * 1024
const usualStalledMs = 30_000

/** The event of a connection whose client does not read. Without a listener it is cut. */
export const stalled = 'stalled'

/** The bytes that wait in the memory of this thread until clients read them: large answers and messages to sockets. */
export class Unread {
  readonly #most: number
  /** A client that reads nothing of what waits for it is disconnected after this time, or twice this time at most. */
  readonly stalledMs: number
  bytes = 0

  constructor(most = mostUnread, stalledMs = usualStalledMs) {
    this.#most = most
    this.stalledMs = stalledMs
  }

  hasRoom(more = 0): boolean {
    return this.bytes + more <= this.#most
  }
}

/** Disconnects clients that do not read, and refuses large answers while too many bytes wait. */
export function boundUnread(
  server: FastifyInstance,
  connections: Iterable<Socket>,
  unread: Unread,
  onCut: () => void,
): void {
  const seen = new WeakMap<Socket, number>()
  const look = () => {
    for (const connection of connections) {
      if (connection.writableLength === 0) continue
      const sent = sentOn(connection)
      const isStalled = seen.get(connection) === sent
      seen.set(connection, sent)
      if (!isStalled || connection.emit(stalled)) continue
      onCut()
      connection.resetAndDestroy() // after an orderly close its bytes would still wait in the kernel
    }
  }
  const timer = setInterval(look, unread.stalledMs).unref()
  server.addHook('onClose', async () => clearInterval(timer))
  server.addHook('onSend', (_request, reply, payload, next) => {
    const isText = typeof payload === 'string'
    if (isText && 3 * payload.length < largeBytes) return next() // three bytes at most for each unit of a string
    const isWhole = isText || Buffer.isBuffer(payload)
    const length = isWhole ? Buffer.byteLength(payload) : Number(reply.getHeader('content-length') ?? 0)
    if (isWhole ? length < largeBytes : length === 0) return next()
    // Node would keep a string in memory as long as its bytes. And the garbage collector knows the size of buffers.
    const body = !isText ? payload : length === payload.length ? Buffer.from(payload) : encode(payload)
    const { raw } = reply
    if (!unread.hasRoom(length)) {
      dropHeadersOfHandler(reply)
      return next(new AppError('unavailable', tooMuch, { retryAfterSeconds: 10 }))
    }
    // If the client is gone, nothing is sent, and no event tells that it has ended.
    if (raw.socket?.destroyed === false) {
      unread.bytes += length
      raw.once('close', () => {
        unread.bytes -= length
        if (isText && body instanceof Uint8Array) release(body)
      })
    }
    next(null, body)
  })
}

/**
 * How many bytes the kernel has taken. Node's own timer looks at them too, but Node sets it anew twice for each request,
 * which takes 2 % of the CPU of a small one.
 */
function sentOn(connection: Socket): number {
  const { _handle: handle } = connection as Socket & {
    _handle: { bytesWritten: number; writeQueueSize: number } | null
  }
  return handle === null ? 0 : handle.bytesWritten - handle.writeQueueSize
}

/** The answer is left out, so the client cannot see whether it was a change. */
const tooMuch = 'Too many answers wait to be read. Try again later. If this was a change, it has happened.'
