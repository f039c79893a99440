import { randomUUID } from 'node:crypto'
import type { Socket as NetSocket } from 'node:net'
import type { WebSocket } from 'ws'
import type { Metrics } from '../../http/metrics.ts'
import { largeBytes, stalled, type Unread } from '../../http/unread.ts'
import type { Conversation } from './protocol.ts'
import type { Wire } from './run.ts'

type Observer = Pick<Metrics['sockets'], 'closedForSlowness'>

/** One WebSocket. Frames for many sockets are written to the stream directly: `ws` would build each again. */
export class Socket implements Wire {
  readonly #websocket: WebSocket
  readonly #stream: NetSocket
  readonly #unread: Unread
  readonly #observer: Observer
  conversation: Conversation | undefined
  /** Resolved when the stream can take more. Undefined if nobody waits for that. */
  #drained: PromiseWithResolvers<void> | undefined
  #bound = mostWaiting
  /** How many bytes waited when they were counted last. */
  #noted = 0
  /** The payload of the last ping, until its pong arrives. */
  #ping: Buffer | undefined

  constructor(websocket: WebSocket, stream: NetSocket, unread: Unread, observer: Observer) {
    this.#websocket = websocket
    this.#stream = stream
    this.#unread = unread
    this.#observer = observer
    const drain = () => {
      websocket.resume()
      this.#drained?.resolve()
      this.#drained = undefined
    }
    stream.on('drain', drain).on('close', drain)
    websocket.on('close', () => this.#count(0))
    stream.on(stalled, () => this.cut())
  }

  get bytes(): number {
    return this.#stream.writableLength
  }

  send(message: string): void {
    if (!this.#isReading()) return
    this.#websocket.send(message)
    if (message.length > small) this.#wrote(Buffer.byteLength(message))
  }

  sendFrame(frame: Buffer): void {
    if (!this.#isReading()) return
    this.#stream.write(frame)
    if (frame.length > small) this.#wrote(frame.length)
  }

  ready(): Promise<void> | undefined {
    if (!this.#stream.writableNeedDrain) return undefined
    this.#drained ??= Promise.withResolvers()
    return this.#drained.promise
  }

  /** Never throws, because it is called to handle errors. */
  close(code: number, reason: string): void {
    try {
      this.#websocket.close(code, reason)
      // Nothing more is parsed: what the client still sends is dropped. The stream ends behind the close frame.
      this.#stream.removeAllListeners('data').resume()
      this.#stream.end()
      setTimeout(() => this.#stream.destroy(), closeTimeoutMs).unref()
    } catch {
      this.#stream.destroy()
    }
  }

  /** Destroys the connection without a close frame, which would only wait behind the unread bytes. */
  cut(): void {
    if (this.#websocket.readyState === openState && !this.#stream.destroyed) this.#observer.closedForSlowness()
    this.#stream.destroy()
  }

  answerPing(payload: Buffer): void {
    if (this.#isReading()) this.#websocket.pong(payload)
  }

  /** Only the bytes of our ping show that it was read: a client that reads nothing can still send other pongs. */
  pong(payload: Buffer): void {
    if (this.#ping?.equals(payload)) this.#ping = undefined
  }

  /**
   * Called at a regular interval. No ping is sent while bytes wait to be sent: it would wait behind them, and
   * whether the client reads those is seen by `unread.ts`.
   */
  beat(): void {
    this.#note()
    if (this.bytes > 0) return
    if (this.#ping !== undefined) return void this.#stream.destroy()
    // Random, so that a client cannot answer on one socket with a ping that it read on another.
    this.#ping = Buffer.from(randomUUID().slice(0, 8))
    this.#websocket.ping(this.#ping)
  }

  /** Whether the socket is open and the client reads. Closes the socket if too many bytes wait. */
  #isReading(): boolean {
    if (this.#websocket.readyState !== openState) return false
    const waiting = this.bytes
    if (waiting > 0 || this.#noted > 0) this.#note()
    if (waiting <= mostWaiting) {
      this.#bound = mostWaiting
      return true
    }
    if (waiting <= this.#bound) return true
    this.#observer.closedForSlowness()
    this.conversation?.end(1013, 'Too slow')
    return false
  }

  /**
   * A single message may be larger than the limit. While it is being sent, the limit is raised, so that others may wait
   * behind it.
   */
  #wrote(bytes: number): void {
    if (bytes > mostWaiting && this.#bound === mostWaiting) this.#bound = this.bytes + mostWaiting
    this.#note()
  }

  /** Counts what waits now. While all clients together leave too much unread, a socket with a large part of it is closed. */
  #note(): void {
    this.#count(this.bytes)
    if (this.#noted >= largeBytes && !this.#unread.hasRoom()) this.cut()
    // A client that does not read is not read either: the answers would only wait.
    if (this.#stream.writableNeedDrain) this.#websocket.pause()
  }

  #count(bytes: number): void {
    this.#unread.bytes += bytes - this.#noted
    this.#noted = bytes
  }
}

export const beatMs = 20_000
/** Maximum bytes that wait for a client that does not read. */
const mostWaiting = 1024 * 1024
/** After a message of up to this size, it is not worth checking immediately whether bytes wait. */
const small = 4096
/** How long a client may take to read the remaining bytes and to answer the close frame. */
const closeTimeoutMs = 5_000

const openState = 1
