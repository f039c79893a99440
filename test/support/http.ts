import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { request as requestOverTls } from 'node:https'
import { connect, type Socket } from 'node:net'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { within } from './wait.ts'

/** One answer as it came over the wire. Header names are in lower case; a repeated header is joined by commas. */
export interface RawResponse {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

/** A connection on which the test controls every byte, for requests that `fetch` refuses to send. */
export class RawConnection implements Disposable {
  readonly #socket: Socket
  /** Whether the connection was reset instead of closed properly. */
  wasReset = false
  #unread = ''

  static async open(port: number, localAddress = '127.0.0.1'): Promise<RawConnection> {
    const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true })
    const connection = new RawConnection(socket)
    await within(once(socket, 'connect'), `a connection to port ${port}`)
    return connection
  }

  private constructor(socket: Socket) {
    this.#socket = socket.setNoDelay()
    socket.on('data', data => {
      this.#unread += data.toString('latin1')
      socket.emit('news')
    })
    // A server that refuses a body may close while the client still sends. The answer before that counts.
    socket.on('error', () => (this.wasReset = true))
    for (const event of ['end', 'close']) socket.on(event, () => socket.emit('news'))
  }

  /** Received data that no `response()` has taken yet. */
  get unread(): string {
    return this.#unread
  }

  write(bytes: string | Uint8Array): void {
    this.#socket.write(bytes)
  }

  /** The next whole answer. Fails if the server closes before it is complete. */
  async response(): Promise<RawResponse> {
    const parse = () => parseResponse(this.#unread, this.isOver)
    await this.until(() => parse() !== undefined)
    const parsed = parse()
    if (parsed === undefined) throw new Error(`The connection closed without a whole answer: ${this.#unread}`)
    this.#unread = this.#unread.slice(parsed.length)
    return parsed.response
  }

  /** Waits until the server has closed, and returns the unread rest of its data. */
  async closed(): Promise<string> {
    await this.until(() => false)
    return this.#unread
  }

  /** Waits for a condition on the received data, or for the end. Returns false if nothing arrives for `quietMs`. */
  until(condition: () => boolean, quietMs?: number): Promise<boolean> {
    return within(this.#until(condition, quietMs), () => `more than ${JSON.stringify(this.#unread.slice(0, 300))}`)
  }

  async #until(condition: () => boolean, quietMs?: number): Promise<boolean> {
    while (!condition() && !this.isOver) {
      const quiet = quietMs === undefined ? undefined : AbortSignal.timeout(quietMs)
      await once(this.#socket, 'news', { ...(quiet && { signal: quiet }) }).catch(() => {})
      if (quiet?.aborted) return condition() || this.isOver
    }
    return true
  }

  /** Whether the server has ended the connection. */
  get isOver(): boolean {
    return this.#socket.readableEnded || this.#socket.destroyed
  }

  /** Disconnects like a crashed client. */
  reset(): void {
    this.#socket.resetAndDestroy()
  }

  /** Ends our side of the connection. */
  finish(): void {
    this.#socket.end()
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }
}

/** A running server: an app, or anything else with a URL. */
export interface Served {
  readonly url: string
}

export interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Any of the addresses of this machine. */
  readonly localAddress?: string
  /** The certificate to trust, for https. */
  readonly ca?: string
}

/**
 * An ordinary request, in the shape of the raw ones. `fetch` would take three times as much CPU, and the tests send many
 * thousands of requests.
 */
export const ask = (url: string, asked: Asked = {}): Promise<RawResponse> =>
  within(askNow(url, asked), `an answer to ${asked.method ?? 'GET'} ${url.slice(0, 200)}`)

async function askNow(url: string, { method = 'GET', headers, body, localAddress, ca }: Asked): Promise<RawResponse> {
  const all = {
    accept: '*/*',
    'accept-encoding': 'gzip, deflate',
    ...(typeof body === 'string' && { 'content-type': 'text/plain;charset=UTF-8' }),
    ...headers,
    ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
  }
  const options = { method, headers: all, joinDuplicateHeaders: true, localAddress }
  const sent = ca === undefined ? request(url, options) : requestOverTls(url, { ...options, ca })
  sent.on('error', () => {}) // after the answer it does not count, and before it the next line reports it
  sent.end(body)
  const [response]: IncomingMessage[] = await once(sent, 'response')
  const bytes = Buffer.concat((await response?.toArray()) ?? [])
  const received = new Map(Object.entries(response?.headers ?? {}).map(([name, value]) => [name, String(value)]))
  const text = decompressed(bytes, received.get('content-encoding')).toString('utf8')
  return { status: response?.statusCode ?? 0, headers: received, body: text }
}

function decompressed(bytes: Buffer, encoding: string | undefined): Buffer {
  if (bytes.length === 0) return bytes
  if (encoding === 'gzip') return gunzipSync(bytes)
  return encoding === 'br' ? brotliDecompressSync(bytes) : bytes
}

/** A request by `fetch`, which reads an answer while it still sends. */
export async function askByFetch(url: string, init: RequestInit = {}): Promise<RawResponse> {
  const response = await within(fetch(url, { redirect: 'manual', ...init }), `an answer from ${url}`)
  return { status: response.status, headers: new Map(response.headers), body: await response.text() }
}

export const postJson = (url: string, body: string | Uint8Array, type = 'application/json'): Promise<RawResponse> =>
  ask(url, { method: 'POST', headers: { 'content-type': type }, body })

/** Whether nobody listens on this port. */
export async function isRefused(port: number): Promise<boolean> {
  try {
    using _connection = await RawConnection.open(port)
    return false
  } catch (error) {
    return Object(error).code === 'ECONNREFUSED'
  }
}

/** Sends bytes on a separate connection and returns the first answer. */
export async function sendRaw(port: number, bytes: string | Uint8Array): Promise<RawResponse> {
  using connection = await RawConnection.open(port)
  connection.write(bytes)
  return await connection.response()
}

/** The first answer in `text` and how many characters it takes, or nothing while it is incomplete. */
export function parseResponse(text: string, closed = true): { response: RawResponse; length: number } | undefined {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1])
  if (!status) throw new Error(`Not an answer of HTTP/1.1: ${JSON.stringify(text)}`)
  const headers = headersOf(lines)
  const body = bodyOf(text.slice(end + 4), status, headers, closed)
  if (body === undefined) return undefined
  return { response: { status, headers, body: body.text }, length: end + 4 + body.length }
}

function headersOf(lines: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>()
  for (const line of lines) {
    const [name = '', value = ''] = line.split(/:(.*)/s).map(part => part.trim())
    const earlier = headers.get(name.toLowerCase())
    headers.set(name.toLowerCase(), earlier === undefined ? value : `${earlier}, ${value}`)
  }
  return headers
}

function bodyOf(
  rest: string,
  status: number,
  headers: ReadonlyMap<string, string>,
  closed: boolean,
): { text: string; length: number } | undefined {
  const decoded = (latin1: string) => Buffer.from(latin1, 'latin1').toString('utf8')
  if (status < 200 || status === 204 || status === 304) return { text: '', length: 0 }
  const length = headers.get('content-length')
  if (length !== undefined) {
    const bytes = Number(length)
    return rest.length < bytes ? undefined : { text: decoded(rest.slice(0, bytes)), length: bytes }
  }
  if (headers.get('transfer-encoding') !== 'chunked') {
    return closed ? { text: decoded(rest), length: rest.length } : undefined
  }
  let text = ''
  for (let at = 0; ; ) {
    const lineEnd = rest.indexOf('\r\n', at)
    const size = Number.parseInt(rest.slice(at, lineEnd), 16)
    const next = lineEnd + 2 + size + 2
    if (lineEnd < 0 || rest.length < next) return undefined
    text += rest.slice(lineEnd + 2, lineEnd + 2 + size)
    if (size === 0) return { text: decoded(text), length: next }
    at = next
  }
}
