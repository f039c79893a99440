import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { WebSocket } from 'ws'
import type { ErrorBody } from './graphql.ts'
import { ask, parseResponse, type RawResponse, type Served } from './http.ts'
import { testTimeoutMs, waitUntil, within } from './wait.ts'

export interface ServerMessage {
  readonly type: string
  readonly id?: string
  readonly payload?: unknown
}

export interface Closing {
  readonly code: number
  readonly reason: string
}

export interface OpenOptions {
  /** Sent with `connection_init`. */
  readonly token?: string | undefined
  /** The headers of the request that opens the socket. */
  readonly headers?: Readonly<Record<string, string>>
  readonly path?: string
  readonly protocols?: readonly string[]
  /** The address of the client. */
  readonly localAddress?: string
  /** The certificate to trust, for wss. */
  readonly ca?: string
}

export interface BeginOptions {
  readonly id?: string
  /** `{ positions: true }`, or `{ after }` with a position. */
  readonly extensions?: { readonly positions?: unknown; readonly after?: unknown }
}

export const subprotocol = 'graphql-transport-ws'

/** A client of graphql-transport-ws that sends given messages and keeps all received ones. */
export class SocketClient implements Disposable {
  readonly websocket: WebSocket
  /** All received messages, in the order of their arrival. */
  readonly messages: ServerMessage[] = []
  readonly #operations = new Map<string, Operation>()
  readonly #closing = Promise.withResolvers<Closing>()
  readonly #waiting = new Set<() => void>()
  #closed: Closing | undefined
  #ids = 0
  /** WebSocket frames. */
  pings = 0

  /** A socket that is open, and has sent no message yet. */
  static async open(app: Served, options: OpenOptions = {}): Promise<SocketClient> {
    const { path = '/graphql', protocols = [subprotocol], headers = {}, localAddress, ca } = options
    const address = app.url.replace(/^http/, 'ws') + path
    const settings = { headers, ...(localAddress && { localAddress }), ...(ca && { ca }), perMessageDeflate: false }
    const client = new SocketClient(new WebSocket(address, [...protocols], settings))
    await within(once(client.websocket, 'open'), `a socket at ${address}`)
    return client
  }

  /** A socket that is acknowledged. */
  static async connect(app: Served, options: OpenOptions = {}): Promise<SocketClient> {
    const client = await SocketClient.open(app, options)
    await client.initialise(options.token === undefined ? undefined : { Authorization: `Bearer ${options.token}` })
    return client
  }

  private constructor(websocket: WebSocket) {
    this.websocket = websocket
    websocket.on('message', data => this.#hear(JSON.parse(String(data))))
    websocket.on('ping', () => this.pings++)
    websocket.on('error', () => {}) // followed by `close`
    websocket.on('close', (code, reason) => {
      this.#closed = { code, reason: String(reason) }
      this.#closing.resolve(this.#closed)
      this.#tellNews()
    })
  }

  #hear(message: ServerMessage): void {
    this.messages.push(message)
    if (message.id !== undefined) this.#operations.get(message.id)?.hear(message)
    this.#tellNews()
  }

  /** The close code and reason of the server, once it has closed. */
  get closed(): Promise<Closing> {
    return within(this.#closing.promise, () => `the socket to be closed, after ${JSON.stringify(this.messages.at(-1))}`)
  }

  get isClosed(): boolean {
    return this.#closed !== undefined
  }

  async initialise(payload?: unknown): Promise<void> {
    this.send({ type: 'connection_init', payload })
    await this.until(() => this.messages.some(({ type }) => type === 'connection_ack'))
  }

  send(message: unknown): void {
    this.sendText(JSON.stringify(message))
  }

  /** Sends a text that `JSON.stringify` cannot produce. */
  sendText(text: string | Buffer): void {
    this.websocket.send(text)
  }

  /** Starts an operation of any kind. */
  begin(
    query: string,
    variables?: object,
    { id = `operation-${++this.#ids}`, extensions }: BeginOptions = {},
  ): Operation {
    const operation = new Operation(this, id, extensions !== undefined)
    this.#operations.set(id, operation)
    this.send({
      type: 'subscribe',
      id,
      payload: { query, ...(variables && { variables }), ...(extensions && { extensions }) },
    })
    return operation
  }

  /** The answer to an operation with one answer. */
  async ask(query: string, variables?: object): Promise<Answer> {
    const operation = this.begin(query, variables)
    await operation.over()
    return { data: operation.events[0], errors: operation.errors }
  }

  /** The data of an operation that must succeed. */
  async read<Data = Readonly<Record<string, unknown>>>(query: string, variables?: object): Promise<Data> {
    const { data, errors } = await this.ask(query, variables)
    assert.equal(errors, undefined, JSON.stringify(errors))
    return data as Data
  }

  /** Waits until the condition holds. Fails if the socket is closed before. */
  async until(condition: () => boolean): Promise<void> {
    const deadline = performance.now() + testTimeoutMs
    while (!condition()) {
      if (this.#closed !== undefined)
        assert.fail(`The socket was closed with ${this.#closed.code} ${this.#closed.reason}`)
      if (performance.now() > deadline) assert.fail(`Timed out waiting until ${condition}`)
      await this.#news()
    }
  }

  /** Waits for the next message, for the end, or for a moment, because a condition may depend on something else. */
  #news(): Promise<void> {
    return new Promise(resolve => {
      this.#waiting.add(resolve)
      setTimeout(resolve, 10)
    })
  }

  #tellNews(): void {
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
  }

  /** Closes the socket with a close frame. */
  async close(code = 1000): Promise<void> {
    this.websocket.close(code)
    await this.closed
  }

  [Symbol.dispose](): void {
    this.websocket.terminate()
  }
}

export interface Answer {
  readonly data: unknown
  readonly errors: readonly ErrorBody[] | undefined
}

/** The messages of one operation. */
export class Operation {
  readonly id: string
  readonly #client: SocketClient
  /** The data of each message. */
  readonly events: unknown[] = []
  /** The position of each event, if the client asked for positions. */
  readonly positions: string[] = []
  readonly #hasPositions: boolean
  errors: readonly ErrorBody[] | undefined
  isOver = false

  constructor(client: SocketClient, id: string, hasPositions: boolean) {
    this.#hasPositions = hasPositions
    this.#client = client
    this.id = id
  }

  hear({ type, payload }: ServerMessage): void {
    assert.ok(!this.isOver, `${this.id} is over, and received ${type}`)
    if (type === 'next') {
      assert.deepEqual(Object.keys(Object(payload)), this.#hasPositions ? ['data', 'extensions'] : ['data'])
      const { data, extensions } = payload as { data: unknown; extensions?: { position: string } }
      this.events.push(data)
      if (extensions !== undefined) this.positions.push(extensions.position)
      return
    }
    assert.ok(type === 'complete' || type === 'error', type)
    this.isOver = true
    if (type === 'error') this.errors = payload as readonly ErrorBody[]
  }

  /**
   * The start of a subscription is not announced. So this creates events until one is received, and then forgets the
   * received ones. `happen` creates an event that contains the given text, and returns the id of its post or comment.
   */
  async listening(happen: (text: string) => Promise<string>): Promise<this> {
    const giveUp = performance.now() + testTimeoutMs
    for (let made = 1; ; made++) {
      assert.ok(performance.now() < giveUp, `${this.id} received none of ${made} events in ${testTimeoutMs / 1000} s`)
      const text = `beacon ${++beacons}`
      const id = await happen(text)
      const isReceived = () => ownValues(this.events.at(-1)).some(value => value === text || value === id)
      const deadline = performance.now() + beaconMs
      await this.#client.until(() => isReceived() || this.isOver || performance.now() > deadline)
      assert.ok(!this.isOver, `${this.id} is over: ${JSON.stringify(this.errors)}`)
      if (!isReceived()) continue // the event was before the start
      this.events.length = 0
      return this
    }
  }

  /** Waits for the server to end it. */
  async over(): Promise<void> {
    await this.#client.until(() => this.isOver)
  }

  /** The first events, this many, once they have arrived. */
  async received(count: number): Promise<readonly unknown[]> {
    await this.#client.until(() => this.events.length >= count || this.isOver)
    if (this.events.length < count) assert.fail(`${this.id} ended after ${this.events.length} events`)
    return this.events.slice(0, count)
  }

  async until(condition: (events: readonly unknown[]) => boolean): Promise<void> {
    await this.#client.until(() => condition(this.events))
  }

  /** Ends the operation from the client's side. */
  complete(): void {
    this.#client.send({ type: 'complete', id: this.id })
  }
}

/**
 * The values of the event's own post or comment. An earlier event may contain a later post among the posts of its
 * author.
 */
const ownValues = (event: unknown): readonly unknown[] =>
  Object.values(Object(event)).flatMap(happened => Object.values(Object(happened)))

let beacons = 0
/** After this time, all subscribers have received an event. */
const beaconMs = 500

/** A frame as it is on the wire. */
export interface Frame {
  readonly opcode: number
  readonly isFinal: boolean
  readonly payload: Buffer
}

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

/** A WebSocket on which the test controls every byte. */
export class RawSocket implements Disposable {
  /** While it is paused, data waits on the server's side, as with a client that hangs. */
  readonly stream: Socket
  readonly frames: Frame[] = []
  /** Gets the frames instead of the list. */
  onFrame: (frame: Frame) => void = frame => this.frames.push(frame)
  isEnded = false
  bytes = 0
  #unread: Buffer = Buffer.alloc(0)
  #handshake: RawResponse | undefined

  /** Sends a WebSocket request, and waits for the answer. */
  static async open(port: number, lines: readonly string[] = upgradeLines()): Promise<RawSocket> {
    const socket = new RawSocket(connect({ port, host: '127.0.0.1', allowHalfOpen: true }))
    await within(once(socket.stream, 'connect'), `a connection to port ${port}`)
    socket.stream.write(`${lines.join('\r\n')}\r\n\r\n`)
    await waitUntil(() => socket.#handshake !== undefined || socket.isEnded)
    return socket
  }

  /** A socket that is acknowledged. */
  static async connect(port: number): Promise<RawSocket> {
    const socket = await RawSocket.open(port)
    assert.equal(socket.handshake.status, 101)
    socket.say({ type: 'connection_init' })
    await waitUntil(() => socket.frames.some(({ payload }) => payload.includes('connection_ack')))
    return socket
  }

  private constructor(stream: Socket) {
    this.stream = stream.setNoDelay()
    stream.on('data', data => this.#take(data))
    stream.on('error', () => {})
    for (const event of ['end', 'close']) {
      stream.on(event, () => (this.isEnded = true))
    }
  }

  get handshake(): RawResponse {
    return this.#handshake ?? assert.fail(`No answer to the request: ${this.#unread}`)
  }

  /** The code in the server's close frame. */
  get closeCode(): number | undefined {
    return this.frames.find(({ opcode }) => opcode === opcodes.close)?.payload.readUInt16BE(0)
  }

  say(message: object): void {
    this.write(clientFrame(JSON.stringify(message)))
  }

  write(bytes: Buffer): void {
    this.stream.write(bytes)
  }

  #take(data: Buffer): void {
    this.bytes += data.length
    this.#unread = this.#unread.length === 0 ? data : Buffer.concat([this.#unread, data])
    if (this.#handshake === undefined) {
      const parsed = parseResponse(this.#unread.toString('latin1'), false)
      if (parsed === undefined) return
      this.#handshake = parsed.response
      this.#unread = this.#unread.subarray(parsed.length)
    }
    for (let frame = frameIn(this.#unread); frame !== undefined; frame = frameIn(this.#unread)) {
      this.#unread = this.#unread.subarray(frame.length)
      this.onFrame(frame)
    }
  }

  [Symbol.dispose](): void {
    this.stream.destroy()
  }
}

/** A WebSocket request, as browsers send it. */
export function upgradeLines(headers: Readonly<Record<string, string | undefined>> = {}, path = '/graphql'): string[] {
  const all = {
    Host: 'localhost',
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol': subprotocol,
    ...headers,
  }
  const lines = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]))
  return [`GET ${path} HTTP/1.1`, ...lines]
}

/** A frame from a client. It is masked with zeros, which leave the bytes readable. */
export function clientFrame(
  payload: string | Buffer,
  { opcode = opcodes.text, isFinal = true }: { opcode?: number; isFinal?: boolean } = {},
): Buffer {
  const bytes = Buffer.from(payload)
  // The length is in the second byte, or in the last ones of those that follow it.
  const [short, following] = bytes.length < 126 ? [bytes.length, 0] : bytes.length < 65_536 ? [126, 2] : [127, 8]
  const head = Buffer.alloc(2 + following + 4)
  if (following > 0) head.writeUInt32BE(bytes.length, following - 2)
  head.set([(isFinal ? 0x80 : 0) | opcode, 0x80 | short])
  return Buffer.concat([head, bytes])
}

/** The first complete frame from the server in these bytes. */
export function frameIn(bytes: Buffer): (Frame & { readonly length: number }) | undefined {
  if (bytes.length < 2) return undefined
  const short = bytes.readUInt8(1) & 0x7f
  const head = short < 126 ? 2 : short === 126 ? 4 : 10
  if (bytes.length < head) return undefined
  const size = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
  if (bytes.length < head + size) return undefined
  const first = bytes.readUInt8(0)
  const payload = bytes.subarray(head, head + size)
  return { opcode: first & 0x0f, isFinal: first >= 0x80, payload, length: head + size }
}

/** The value of one metric. */
export async function metricOf(app: Served, name: string): Promise<number> {
  const { body } = await ask(`${app.url}/metrics`)
  const line = body.split('\n').find(each => each.startsWith(`${name} `))
  return line === undefined ? assert.fail(`no ${name}`) : Number(line.slice(name.length + 1))
}

/** Waits until nothing is left of any socket: no subscription, no group. */
export async function untilNoSocketIsLeft(app: Served): Promise<void> {
  const names = ['duet_sockets', 'duet_subscriptions', 'duet_subscription_groups']
  await waitUntil(async () => (await Promise.all(names.map(name => metricOf(app, name)))).every(value => value === 0))
}
