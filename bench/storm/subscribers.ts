import { type Client, createClient } from 'graphql-ws'
import { WebSocket } from 'ws'

/** Where the subscribers connect. They wait at the gate while it is closed, and then come all at once. */
export interface Entrance {
  readonly url: string
  gate: PromiseWithResolvers<void>
}

export interface SubscriberOptions {
  readonly entrance: Entrance
  /** Each subscriber is a client of its own, behind a proxy. */
  readonly address: string
  readonly token: string | undefined
  /** Undefined: new posts. Else the comments of this post. */
  readonly postId: number | undefined
}

/** A subscriber that notes what it gets, and resumes after its last event when it is cut off. */
export abstract class Subscriber {
  readonly #postId: number | undefined
  readonly ids: number[] = []
  /** Error messages, and closing codes that nobody asked for. */
  readonly troubles: string[] = []
  acknowledgedAt = Number.NaN
  receivedAt = Number.NaN
  protected readonly payload: { readonly query: string; extensions: object }
  protected isCut = false

  constructor({ postId }: SubscriberOptions) {
    this.#postId = postId
    const query = `subscription { ${postId === undefined ? 'postAdded' : `commentAdded(postId: ${postId})`} { id } }`
    this.payload = { query, extensions: { positions: true } }
  }

  /** Cuts the connection without a close frame. */
  abstract cut(): void
  abstract end(): void

  wants({ kind, postId }: { readonly kind: string; readonly postId: number }): boolean {
    return this.#postId === undefined ? kind === 'post-added' : kind === 'comment-added' && postId === this.#postId
  }

  protected acknowledge(position: string): void {
    this.acknowledgedAt = performance.now()
    if (!('after' in this.payload.extensions)) this.payload.extensions = { after: position }
  }

  protected hear({ data, extensions }: Told): void {
    this.receivedAt = performance.now()
    this.ids.push(Number(Object.values(data)[0]?.id))
    this.payload.extensions = { after: extensions.position }
  }
}

/** The client that most applications use. It sends its payload again at each connection, so a position in it is enough. */
export class UsualSubscriber extends Subscriber {
  readonly #client: Client
  readonly #stop: () => void

  constructor(options: SubscriberOptions) {
    super(options)
    const { entrance, address, token } = options
    class Forwarded extends WebSocket {
      constructor(url: string, protocol: string) {
        super(url, protocol, { headers: { 'x-forwarded-for': address }, perMessageDeflate: false })
      }
    }
    this.#client = createClient({
      url: entrance.url,
      webSocketImpl: Forwarded,
      lazy: false,
      connectionParams: { positions: true, ...(token !== undefined && { Authorization: `Bearer ${token}` }) },
      retryAttempts: Number.POSITIVE_INFINITY,
      retryWait: async () => {
        await entrance.gate.promise
        this.isCut = false
      },
      onNonLazyError: error => this.troubles.push(String(error)),
      on: {
        connected: (_socket, payload) => this.acknowledge(String(payload?.position)),
        closed: event => {
          if (!this.isCut) this.troubles.push(`closed with ${(event as { code: number }).code}`)
        },
      },
    })
    this.#stop = this.#client.subscribe(this.payload as never, {
      next: result => this.hear(result as unknown as Told),
      error: error => this.troubles.push(JSON.stringify(error)),
      complete: () => {},
    })
  }

  cut(): void {
    this.isCut = true
    this.#client.terminate()
  }

  end(): void {
    this.isCut = true
    this.#stop()
    void this.#client.dispose()
  }
}

/** Does no more than it must, so that thousands fit into one process beside the service. */
export class PlainSubscriber extends Subscriber {
  readonly #options: SubscriberOptions
  #socket: WebSocket | undefined

  constructor(options: SubscriberOptions) {
    super(options)
    this.#options = options
    void this.#connect()
  }

  async #connect(): Promise<void> {
    const { entrance, address, token } = this.#options
    await entrance.gate.promise
    this.isCut = false
    const headers = { 'x-forwarded-for': address }
    const socket = new WebSocket(entrance.url, 'graphql-transport-ws', { headers, perMessageDeflate: false })
    this.#socket = socket
    const say = (message: object) => socket.send(JSON.stringify(message))
    const payload = { positions: true, ...(token !== undefined && { Authorization: `Bearer ${token}` }) }
    socket.on('open', () => say({ type: 'connection_init', payload }))
    socket.on('error', error => this.troubles.push(String(error)))
    socket.on('close', code => {
      if (!this.isCut) this.troubles.push(`closed with ${code}`)
      if (this.#socket === socket) void this.#connect()
    })
    socket.on('message', data => {
      const message = JSON.parse(String(data))
      if (message.type === 'next') this.hear(message.payload)
      else if (message.type === 'connection_ack') {
        this.acknowledge(message.payload.position)
        say({ type: 'subscribe', id: '1', payload: this.payload })
      } else this.troubles.push(JSON.stringify(message.payload ?? message.type))
    })
  }

  cut(): void {
    this.isCut = true
    this.#socket?.terminate()
  }

  end(): void {
    const socket = this.#socket
    this.isCut = true
    this.#socket = undefined
    socket?.terminate()
  }
}

interface Told {
  readonly data: Readonly<Record<string, { readonly id: string }>>
  readonly extensions: { readonly position: string }
}
