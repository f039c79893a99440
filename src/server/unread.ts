import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { clientKey, type TrustedProxies } from './client-address.ts'
import type { Lifecycle } from './lifecycle.ts'
import { StalledConnections } from './stalled-connections.ts'
import { Unsent, type UnsentBounds } from './unsent.ts'
import { UnsentAnswers } from './unsent-answers.ts'

const mebibyte = 1024 * 1024

/** Limits on the unsent data of clients that do not read, and on how long it may wait. */
export interface UnreadBounds extends UnsentBounds {
  readonly stalledMs: number
  readonly sweepMs: number
  /** Responses of at least this size are counted. Smaller ones are bounded by the number of connections. */
  readonly countedFrom: number
}

export const unreadBounds: UnreadBounds = {
  stalledMs: 30_000,
  sweepMs: 2_000,
  countedFrom: mebibyte / 16,
  perClient: 64 * mebibyte,
  inAll: 256 * mebibyte,
}

export interface UnreadOptions {
  readonly proxies: TrustedProxies
  readonly lifecycle: Lifecycle
  readonly bounds?: Partial<UnreadBounds> | undefined
  /** Counts unsent WebSocket messages too. Without it, only HTTP responses are counted. */
  readonly unsent?: Unsent | undefined
  readonly now?: (() => number) | undefined
  /** Called for each connection that is closed. */
  readonly onCut: () => void
}

/** Closes connections of clients that do not read: such clients could keep their responses in our memory forever. */
export function cutUnread(
  server: FastifyInstance,
  { proxies, lifecycle, bounds, unsent, now, onCut }: UnreadOptions,
): void {
  const all = { ...unreadBounds, ...bounds }
  const cut = (connection: Socket) => {
    onCut()
    connection.resetAndDestroy() // after an orderly close its bytes would still wait in the kernel
  }
  const { connections } = lifecycle
  const stalled = new StalledConnections({ ...all, connections, cut, now: now ?? (() => performance.now()) })
  server.addHook('onClose', async () => stalled[Symbol.dispose]())
  const answers = new UnsentAnswers(unsent ?? new Unsent(all), all.perClient, cut)
  server.addHook('onSend', (request, reply, payload, next) => {
    const size = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload.length : 0
    if (size < all.countedFrom) return next()
    const client = clientKey(proxies.clientOf(request.raw))
    if (typeof payload !== 'string') return answers.add(reply.raw, client, size, next)
    // Node would keep the string in memory as long as its bytes. And the garbage collector knows the size of buffers.
    answers.add(reply.raw, client, Buffer.byteLength(payload), () => next(null, Buffer.from(payload)))
  })
}
