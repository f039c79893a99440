import type { IncomingMessage } from 'node:http'
import { type WebSocket, WebSocketServer } from 'ws'
import type { IdentifiedUser } from '../../core/actor.ts'
import { AppError, fault, isOutage } from '../../core/errors.ts'
import type { Metrics } from '../../http/metrics.ts'
import { isSameHost } from '../../http/origins.ts'
import type { Unread } from '../../http/unread.ts'
import type { Upgrade } from '../../http/upgrades.ts'
import { Counts } from '../../lib/counts.ts'
import { messageRate } from '../../lib/message-rate.ts'
import { inSlices } from '../../lib/pace.ts'
import { socketBounds } from './messages.ts'
import { Conversation, type ConversationParts } from './protocol.ts'
import { beatMs, Socket } from './socket.ts'

export const subprotocol = 'graphql-transport-ws'

export interface SocketsParts extends Omit<ConversationParts, 'take' | 'client'> {
  /** Returns the function that counts the operations of the client that sent this request. */
  readonly takeFor: (request: IncomingMessage) => ConversationParts['take']
  readonly clientOf: (request: IncomingMessage) => string
  readonly socketsPerClient: number
  /** Averaged over ten seconds; 0: any number. */
  readonly messagesPerSecond: number
  readonly isAllowedOrigin: (origin: string) => boolean
  readonly unread: Unread
  readonly observer: Pick<Metrics['sockets'], 'closedForSlowness' | 'ended'>
}

/** The open sockets: opens, counts and closes them. Their messages are handled by `Conversation`. */
export class Sockets implements AsyncDisposable {
  readonly #parts: SocketsParts
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    allowSynchronousEvents: false, // others have a turn between the messages of one packet
    // Pings count like messages, and are answered when they have been counted.
    autoPong: false,
    maxFragments: socketBounds.fragments,
    maxBufferedChunks: socketBounds.chunks,
    maxPayload: socketBounds.message,
    handleProtocols: protocols => (protocols.has(subprotocol) ? subprotocol : false),
  })
  readonly #sockets = new Map<Socket, Conversation>()
  /** How many sockets each client has, including those that are being closed. */
  readonly #perClient = new Counts()
  /** Count the messages of each client that has sockets. */
  readonly #rates = new Map<string, ReturnType<typeof messageRate>>()
  #retired: { readonly code: number; readonly reason: string } | undefined
  readonly #heartbeat = setInterval(() => void this.beat(), beatMs).unref()

  constructor(parts: SocketsParts) {
    this.#parts = parts
    this.#server.on('headers', (headers, request) => headers.push(...(request.socketUpgrade?.headers ?? [])))
  }

  get size(): number {
    return this.#sockets.size
  }

  /** Upgrades a request to a WebSocket. The request has passed all checks of normal requests. */
  accept(request: IncomingMessage, { stream, head }: Upgrade): void {
    try {
      this.#server.handleUpgrade(request, stream, head, websocket => this.#open(websocket, request, stream))
    } catch (error) {
      stream.destroy()
      this.#parts.report(fault(error))
    }
  }

  /**
   * Throws if the client may not open a socket. It may not have too many, and its page must have no origin, our own or
   * one that CORS allows.
   */
  check(request: IncomingMessage): void {
    const { clientOf, socketsPerClient, isAllowedOrigin } = this.#parts
    const { origin, host } = request.headers
    if (origin !== undefined && !isAllowedOrigin(origin) && !isSameHost(origin, host))
      throw new AppError('forbidden', 'Origin is not allowed')
    if (this.#perClient.of(clientOf(request)) < socketsPerClient) return
    throw new AppError('rate-limited', 'Too many open sockets. Try again later.', { retryAfterSeconds: retrySeconds })
  }

  #open(websocket: WebSocket, request: IncomingMessage, stream: Upgrade['stream']): void {
    delete request.socketUpgrade // no longer needed, and a socket may live long
    const { unread, observer, clientOf } = this.#parts
    const client = clientOf(request)
    const socket = new Socket(websocket, stream, unread, observer)
    this.#perClient.add(client)
    websocket.on('error', () => {}) // followed by `close`
    websocket.on('close', () => {
      if (this.#perClient.add(client, -1) === 0) this.#rates.delete(client)
      this.#sockets.delete(socket)
    })
    if (websocket.protocol !== subprotocol) socket.close(4406, 'Subprotocol not acceptable')
    else if (this.#retired !== undefined) socket.close(this.#retired.code, this.#retired.reason)
    else this.#converse(websocket, socket, request, client)
  }

  #converse(websocket: WebSocket, socket: Socket, request: IncomingMessage, client: string): void {
    const parts = { ...this.#parts, client, take: this.#parts.takeFor(request) }
    const conversation = new Conversation(parts, socket, request.headers.authorization)
    socket.conversation = conversation
    this.#sockets.set(socket, conversation)
    websocket.on('close', () => conversation.guarded(() => conversation.closed()))
    const now = () => parts.clock.now()
    const ofSocket = messageRate(parts.messagesPerSecond, now)
    const ofClient =
      this.#rates.get(client) ?? messageRate(parts.messagesPerSecond * atFullRate(parts.socketsPerClient), now)
    this.#rates.set(client, ofClient)
    // Frames of WebSocket itself count like messages: each is work.
    const counted = (bytes: number, work: () => void) =>
      conversation.guarded(() => {
        if (ofSocket(bytes) && ofClient(bytes)) work()
        else conversation.end(1008, 'Too many messages')
      })
    websocket.on('message', (data, isBinary) => {
      const bytes = data as Buffer
      const receive = () => (isBinary ? conversation.end(4400, 'Invalid message') : conversation.receive(bytes))
      counted(bytes.length, receive)
    })
    websocket.on('ping', payload => counted(payload.length, () => socket.answerPing(payload)))
    websocket.on('pong', payload => counted(payload.length, () => socket.pong(payload)))
  }

  /** Tokens of a user may have been revoked. Checks the user's sockets and closes those with a revoked token. */
  async revoke(userId: number): Promise<void> {
    // Results by token version: a user may have a thousand sockets, but few token versions.
    const known = new Map<string, boolean>()
    const revoked: Conversation[] = []
    for (const conversation of this.#sockets.values()) {
      const { actor } = conversation.login
      if (actor.kind !== 'user' || actor.id !== userId) continue
      const isValid = known.get(actor.tokenVersion) ?? (await this.#isStillValid(actor))
      known.set(actor.tokenVersion, isValid)
      if (!isValid) revoked.push(conversation)
    }
    await inSlices(revoked, each => each.end(4403, 'Forbidden'))
  }

  /** A permanent error counts as revoked. If the store is unavailable, the error is thrown. */
  async #isStillValid(user: IdentifiedUser): Promise<boolean> {
    try {
      return await this.#parts.isStillValid(user)
    } catch (error) {
      if (isOutage(error)) throw error
      this.#parts.report(error instanceof AppError ? error : fault(error))
      return false
    }
  }

  /** Closes the sockets whose tokens were signed by a key that was removed. */
  revokeKeys(): void {
    for (const each of this.#sockets.values()) each.guarded(() => each.login.requireKey())
  }

  /** Closes all sockets for good: later ones are closed immediately. */
  retire(code: number, reason: string): void {
    this.#retired = { code, reason }
    this.closeAll(code, reason)
  }

  /** Closes each socket as soon as its running operations are answered. */
  closeAll(code: number, reason: string): void {
    for (const each of this.#sockets.values()) each.guarded(() => each.endSoon(code, reason))
  }

  beat(): Promise<void> {
    return inSlices(this.#sockets, ([socket, conversation]) => conversation.guarded(() => socket.beat()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#heartbeat)
    this.retire(1001, 'Going away')
    this.#server.close()
  }
}

/** All sockets of a client together may send as much as a fiftieth of them. A thousand would take most of a core. */
const atFullRate = (socketsPerClient: number) => Math.ceil(socketsPerClient / 50)
const retrySeconds = 10
