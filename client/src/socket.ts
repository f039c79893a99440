import type { Clock } from './clock.ts'

/** The part of `WebSocket` that the client uses. The classes of browsers, of Node and of `ws` have it. */
export interface Socket {
  onopen: ((event: never) => void) | null
  onmessage: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  onerror: ((event: never) => void) | null
  send(text: string): void
  close(code?: number, reason?: string): void
}

export type SocketConstructor = new (url: string, protocol: string) => Socket

export interface Message {
  readonly type: string
  readonly id?: string
  readonly payload?: unknown
}

export interface ChannelOptions {
  readonly WebSocket: SocketConstructor
  readonly url: string
  readonly token: string | undefined
  readonly clock: Clock
  /** The service has accepted the connection. `position`: the end of its event log, if it tells that. */
  readonly onReady: (position: string | undefined) => void
  /** A message of an operation. */
  readonly onMessage: (message: Message) => void
  /** Called once, however the connection ends, except by `close`. */
  readonly onLost: (code: number) => void
}

/**
 * One socket that speaks graphql-transport-ws. A connection can be lost without notice, for example when a laptop
 * sleeps or changes its network. So a silent connection gets a ping, and is closed if no answer comes.
 */
export class Channel {
  readonly #options: ChannelOptions
  readonly #socket: Socket
  readonly #pings = new Map<number, () => void>()
  #lastPing = 0
  #isReady = false
  #cancelTimer: () => void

  constructor(options: ChannelOptions) {
    this.#options = options
    const { WebSocket, url, token, clock } = options
    this.#socket = new WebSocket(url, 'graphql-transport-ws')
    this.#cancelTimer = clock.after(answerMs, () => this.#lose(1006))
    const payload = { ...(token !== undefined && { Authorization: `Bearer ${token}` }), positions: true }
    this.#socket.onopen = () => this.send({ type: 'connection_init', payload })
    this.#socket.onmessage = ({ data }: { data: unknown }) => this.#receive(String(data))
    this.#socket.onclose = ({ code }: { code: number }) => this.#lose(code)
    this.#socket.onerror = () => {} // followed by `onclose`
  }

  get isReady(): boolean {
    return this.#isReady
  }

  send(message: object): void {
    this.#socket.send(JSON.stringify(message))
  }

  /** Calls the function when the service has read all earlier messages. */
  ping(onPong: () => void): void {
    this.#pings.set(++this.#lastPing, onPong)
    this.send({ type: 'ping', payload: { number: this.#lastPing } })
  }

  /** Closes the connection. No callback is called after that. */
  close(): void {
    this.#isReady = false
    this.#cancelTimer()
    this.#socket.onopen = this.#socket.onmessage = this.#socket.onclose = null
    this.#socket.onerror = () => {} // a socket of `ws` would throw without it
    this.#socket.close(1000)
  }

  /** Handles a message. An invalid message does not come from the service, so the connection is closed. */
  #receive(text: string): void {
    try {
      this.#hear(JSON.parse(text))
    } catch {
      this.#lose(protocolError)
    }
  }

  #hear(message: Message): void {
    const { type, payload } = message
    if (type === 'connection_ack') {
      if (this.#isReady) throw new Error('Acknowledged twice')
      this.#isReady = true
      this.#options.onReady((payload as { position?: string } | undefined)?.position)
    } else if (type === 'ping') this.send({ type: 'pong', payload })
    else if (type === 'pong') this.#answered((payload as { number?: number } | undefined)?.number ?? 0)
    else this.#options.onMessage(message)
    this.#watch()
  }

  #answered(number: number): void {
    const onPong = this.#pings.get(number)
    this.#pings.delete(number)
    onPong?.()
  }

  /** Waits for the next message, and sends a ping if none comes. */
  #watch(): void {
    if (!this.#isReady) return
    this.#cancelTimer()
    const { clock } = this.#options
    this.#cancelTimer = clock.after(silenceMs, () => {
      this.#cancelTimer = clock.after(answerMs, () => this.#lose(1006))
      this.ping(() => {})
    })
  }

  #lose(code: number): void {
    this.close()
    this.#options.onLost(code)
  }
}

const protocolError = 1002
const silenceMs = 20_000
const answerMs = 10_000
