import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { clientKey, type TrustedProxies } from './client-address.ts'
import type { Lifecycle } from './lifecycle.ts'
import { StalledConnections } from './stalled-connections.ts'
import { Unsent, type UnsentBounds } from './unsent.ts'
import { UnsentAnswers } from './unsent-answers.ts'

const mebibyte = 1024 * 1024

/** How much may wait for clients that do not read, and for how long. */
export interface UnreadBounds extends UnsentBounds {
  readonly stalledMs: number
  readonly sweepMs: number
  /** Answers of at least this size count; smaller ones are bounded by the number of connections. */
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
  /** What waits on sockets too; without it answers are counted alone. */
  readonly unsent?: Unsent | undefined
  readonly now?: (() => number) | undefined
  /** Told of each connection that is cut. */
  readonly onCut: () => void
}

/** Ends those who ask and do not read: their answers would stay in memory for as long as they like. */
export function cutUnread(
  server: FastifyInstance,
  { proxies, lifecycle, bounds, unsent, now, onCut }: UnreadOptions,
): void {
  const all = { ...unreadBounds, ...bounds }
  const cut = (connection: Socket) => {
    onCut()
    connection.resetAndDestroy() // closed in order, its bytes would go on waiting in the kernel
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
    // Node would keep the text as long as its bytes; and of bytes the garbage collector knows how many there are.
    answers.add(reply.raw, client, Buffer.byteLength(payload), () => next(null, Buffer.from(payload)))
  })
}
