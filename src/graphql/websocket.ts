import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Upgrade } from '../server/upgrades.ts'
import { Conversation, type ConversationParts, socketBounds } from './protocol.ts'
import type { Wire } from './run.ts'

export const subprotocol = 'graphql-transport-ws'

export interface SocketObserver {
  /** Somebody did not read what was sent, and was closed. */
  closedForSlowness(): void
}

export interface SocketsParts extends Omit<ConversationParts, 'take'> {
  /** What counts the operations of whoever sent this request. */
  readonly takeFor: (request: IncomingMessage) => ConversationParts['take']
  readonly isAllowedOrigin: (origin: string) => boolean
  readonly observer: SocketObserver
}

/** The open sockets: how they come and go. What is said on them is the business of their conversations. */
export class Sockets implements AsyncDisposable {
  readonly #parts: SocketsParts
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: socketBounds.message,
    handleProtocols: protocols => (protocols.has(subprotocol) ? subprotocol : false),
  })
  readonly #sockets = new Set<Socket>()
  #retired: { readonly code: number; readonly reason: string } | undefined
  readonly #heart = setInterval(() => this.#beat(), pingMs).unref()

  constructor(parts: SocketsParts) {
    this.#parts = parts
    this.#server.on('headers', (headers, request) => headers.push(...(request.socketUpgrade?.headers ?? [])))
  }

  get size(): number {
    return this.#sockets.size
  }

  /** Makes a socket of a request that asked for one, which has passed all checks that requests pass. */
  accept(request: IncomingMessage, { stream, head }: Upgrade): void {
    this.#server.handleUpgrade(request, stream, head, websocket => {
      delete request.socketUpgrade // done with; a socket may live long
      const socket = new Socket(websocket, stream, this.#parts.observer)
      if (websocket.protocol !== subprotocol) {
        socket.close(4406, 'Subprotocol not acceptable')
        return
      }
      if (this.#retired !== undefined) {
        socket.close(this.#retired.code, this.#retired.reason)
        return
      }
      const parts = { ...this.#parts, take: this.#parts.takeFor(request) }
      const conversation = new Conversation(parts, socket, request.headers.authorization)
      socket.conversation = conversation
      this.#sockets.add(socket)
      websocket.on('message', (data, isBinary) => {
        if (isBinary) conversation.end(4400, 'Invalid message')
        else conversation.receive(String(data))
      })
      websocket.on('close', () => {
        this.#sockets.delete(socket)
        conversation.closed()
      })
    })
  }

  /** Pages of our own, and of origins that may call us. */
  isAllowed({ headers: { origin, host } }: IncomingMessage): boolean {
    if (origin === undefined || this.#parts.isAllowedOrigin(origin)) return true
    return URL.canParse(origin) && new URL(origin).host === host
  }

  /** A user's tokens may be dead: whoever holds one is looked at again. */
  async revoke(userId: number): Promise<void> {
    for (const { conversation } of this.#sockets) {
      const actor = conversation?.actor
      if (actor?.kind !== 'user' || actor.id !== userId) continue
      if (!(await this.#parts.stillStands(actor))) conversation?.end(4403, 'Forbidden')
    }
  }

  /** For good: who comes later is closed at once. */
  retire(code: number, reason: string): void {
    this.#retired = { code, reason }
    this.closeAll(code, reason)
  }

  /** Each as soon as what it has under way is answered. */
  closeAll(code: number, reason: string): void {
    for (const { conversation } of this.#sockets) conversation?.endSoon(code, reason)
  }

  #beat(): void {
    for (const socket of this.#sockets) socket.beat()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#heart)
    this.retire(1001, 'Going away')
    this.#server.close()
  }
}

const pingMs = 20_000
/** Bytes that may wait for one who does not read. */
const mostWaiting = 1024 * 1024
/** A message of fewer characters cannot be more than that: each takes four bytes at most. */
const smallest = mostWaiting / 4
/** How long who was closed has to read what waits for it, and to answer. */
const farewellMs = 5_000

const pingFrame = Buffer.from([0x89, 0])

/** One socket. Frames that many get are written to the stream as they are: `ws` would build each anew. */
class Socket implements Wire {
  readonly #websocket: WebSocket
  readonly #stream: Duplex
  readonly #observer: SocketObserver
  conversation: Conversation | undefined
  #bound = mostWaiting
  #isAlive = true

  constructor(websocket: WebSocket, stream: Duplex, observer: SocketObserver) {
    this.#websocket = websocket
    this.#stream = stream
    this.#observer = observer
    websocket.on('error', () => {}) // followed by `close`
    websocket.on('pong', () => {
      this.#isAlive = true
    })
  }

  send(message: string): void {
    if (!this.#isReading()) return
    this.#websocket.send(message)
    if (message.length > smallest) this.#allow(Buffer.byteLength(message))
  }

  sendFrame(frame: Buffer): void {
    if (!this.#isReading()) return
    this.#stream.write(frame)
    if (frame.length > smallest) this.#allow(frame.length)
  }

  close(code: number, reason: string): void {
    this.#websocket.close(code, reason)
    setTimeout(() => this.#websocket.terminate(), farewellMs).unref()
  }

  /** Who has not answered the last ping is gone. */
  beat(): void {
    if (!this.#isAlive) this.#websocket.terminate()
    else {
      this.#isAlive = false
      this.#stream.write(pingFrame)
    }
  }

  /** Who lets too much wait is closed. */
  #isReading(): boolean {
    if (this.#websocket.readyState !== openState) return false
    const waiting = this.#stream.writableLength
    if (waiting <= mostWaiting) {
      this.#bound = mostWaiting
      return true
    }
    if (waiting <= this.#bound) return true
    this.#observer.closedForSlowness()
    this.conversation?.end(1013, 'Too slow')
    return false
  }

  /** One message may be more than the bound: while it is being sent, others may wait behind it. */
  #allow(bytes: number): void {
    if (bytes > mostWaiting && this.#bound === mostWaiting) this.#bound = this.#stream.writableLength + mostWaiting
  }
}

const openState = 1
