import { randomBytes } from 'node:crypto'
import type { Socket as NetSocket } from 'node:net'
import type { WebSocket } from 'ws'
import type { Conversation } from './protocol.ts'
import type { Wire } from './run.ts'
import type { Connection, Unsent } from './unsent.ts'

export interface SocketObserver {
  /** Somebody did not read what was sent, and was closed. */
  closedForSlowness(): void
}

export interface SocketParts {
  readonly websocket: WebSocket
  readonly stream: NetSocket
  /** What waits for the same client on all its sockets. */
  readonly unsent: Unsent
  readonly observer: SocketObserver
}

/** One socket. Frames that many get are written to the stream as they are: `ws` would build each anew. */
export class Socket implements Wire, Connection {
  readonly #websocket: WebSocket
  readonly #stream: NetSocket
  readonly #unsent: Unsent
  readonly #observer: SocketObserver
  conversation: Conversation | undefined
  #bound = mostWaiting
  #isNoted = false
  #isSlow = false
  /** The bytes of the last ping, until they come back. */
  #ping: Buffer | undefined
  #quietBeats = 0
  #stalledBeats = 0
  /** What had been sent at the last beat, while something waits. */
  #sent = Number.NEGATIVE_INFINITY

  constructor({ websocket, stream, unsent, observer }: SocketParts) {
    this.#websocket = websocket
    this.#stream = stream
    this.#unsent = unsent
    this.#observer = observer
  }

  get unsent(): number {
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

  /** Never throws: it is what is done about that which was thrown. */
  close(code: number, reason: string): void {
    try {
      this.#websocket.close(code, reason)
      setTimeout(() => this.#stream.destroy(), farewellMs).unref()
    } catch {
      this.#stream.destroy()
    }
  }

  /** Without a close frame, which would only wait. */
  cut(): void {
    this.#noteSlow()
    this.#stream.destroy()
  }

  /** Only the bytes of our ping show that it was read: somebody who reads nothing can still send other pongs. */
  pong(payload: Buffer): void {
    if (this.#ping?.equals(payload)) this.#ping = undefined
  }

  /** Comes regularly. Who lets something wait must read some of it now and then; anybody else must answer pings. */
  beat(): void {
    this.#note()
    if (this.unsent > 0) this.#watch()
    else this.#askForLife()
  }

  /** While something waits, a ping would wait behind it. */
  #watch(): void {
    const sent = bytesSent(this.#stream)
    this.#stalledBeats = sent > this.#sent ? 0 : this.#stalledBeats + 1
    this.#sent = sent
    if (this.#stalledBeats >= mostStalledBeats) this.cut()
  }

  #askForLife(): void {
    this.#sent = Number.NEGATIVE_INFINITY
    if (++this.#quietBeats % beatsPerPing > 0) return
    if (this.#ping !== undefined) {
      this.#stream.destroy()
      return
    }
    // Random, so that a client cannot answer on one socket what it reads on another.
    this.#ping = randomBytes(pingBytes)
    this.#stream.write(Buffer.concat([pingHead, this.#ping]))
  }

  /** Who lets too much wait is closed. */
  #isReading(): boolean {
    if (this.#websocket.readyState !== openState) return false
    const waiting = this.unsent
    if (waiting > 0 || this.#isNoted) this.#note()
    if (waiting <= mostWaiting) {
      this.#bound = mostWaiting
      return true
    }
    if (waiting <= this.#bound) return true
    this.#noteSlow()
    this.conversation?.end(1013, 'Too slow')
    return false
  }

  /** One message may be more than the bound: while it is being sent, others may wait behind it. */
  #wrote(bytes: number): void {
    if (bytes > mostWaiting && this.#bound === mostWaiting) this.#bound = this.unsent + mostWaiting
    this.#note()
  }

  #note(): void {
    this.#isNoted = this.unsent > 0
    this.#unsent.note(this)
  }

  #noteSlow(): void {
    if (!this.#isSlow) this.#observer.closedForSlowness()
    this.#isSlow = true
  }
}

export const beatMs = 10_000
const beatsPerPing = 2
/** Who has read nothing of what waits for 30 seconds is cut off. */
const mostStalledBeats = 3
/** Bytes that may wait for one who does not read. */
const mostWaiting = 1024 * 1024
/** Bytes of a message after which it is not worth looking at once whether they wait. */
const small = 4096
/** How long who was closed has to read what waits for it, and to answer. */
const farewellMs = 5_000

const pingBytes = 8
const pingHead = Buffer.from([0x89, pingBytes])

const openState = 1

/**
 * Bytes that have left this process. `writableLength` alone tells of progress only when a whole message has been sent, and
 * that may take minutes; the runtime knows how much of it is left.
 */
function bytesSent(stream: NetSocket): number {
  const { _handle: handle } = stream as NetSocket & { readonly _handle?: Handle | null }
  return handle ? handle.bytesWritten - handle.writeQueueSize : -stream.writableLength
}

interface Handle {
  readonly bytesWritten: number
  readonly writeQueueSize: number
}
