import { connect, type Socket } from 'node:net'
import { counter, errorStart } from './requests.ts'

// Sends requests from a process of its own, so that what it costs does not count as the server's. It is told what to do
// over the channel to its parent, and written to be cheap: raw sockets, one buffer each, no parsing beyond the necessary.

export type Order =
  | { readonly do: 'connect'; readonly port: number; readonly connections: number }
  | ({ readonly do: 'run' } & Run)
  | { readonly do: 'disconnect' }

export interface Run {
  readonly ms: number
  /** Goes on until there were so many answers, but no longer than ten times as long. */
  readonly least: number
  /** A number under which the requests are kept. They are sent the first time only. */
  readonly list: number
  readonly requests?: readonly string[]
  /** The status that each answer must have. */
  readonly status: number
  /** Ends when each request was sent once. */
  readonly once: boolean
}

export interface Outcome {
  readonly answers: number
  /** How many of them were errors of GraphQL. */
  readonly errors: number
  readonly seconds: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Microseconds of CPU of this process. */
  readonly cpu: number
  readonly failure?: string
}

let counted = Date.now() % 1_000_000_000

type Template = string | readonly [before: string, after: string]
const lists = new Map<number, readonly Template[]>()

function templatesOf({ list, requests, once }: Run): readonly Template[] {
  const known = lists.get(list)
  if (known !== undefined) return known
  const templates = (requests ?? []).map(text => {
    const at = text.indexOf(counter)
    return at < 0 ? text : ([text.slice(0, at), text.slice(at + counter.length)] as const)
  })
  if (!once) lists.set(list, templates)
  return templates
}

/** The run that connections are in. */
class Running {
  readonly #run: Run
  readonly #templates: readonly Template[]
  readonly #end: number
  readonly #started = performance.now()
  readonly #cpu = process.cpuUsage()
  readonly #latencies: number[] = []
  readonly #done = Promise.withResolvers<Outcome>()
  #errors = 0
  #sent = 0
  #busy = 0

  constructor(run: Run) {
    this.#run = run
    this.#templates = templatesOf(run)
    this.#end = this.#started + run.ms
  }

  start(connections: readonly Connection[]): Promise<Outcome> {
    for (const connection of connections) {
      const first = this.#next()
      if (first === undefined) break
      this.#busy++
      connection.send(first, this)
    }
    return this.#done.promise
  }

  /** The request to send after an answer, if any. */
  answered(status: number, isError: boolean, milliseconds: number, now: number): string | undefined {
    this.#latencies.push(milliseconds)
    if (isError) this.#errors++
    if (status !== this.#run.status) this.fail(`An answer had status ${status} instead of ${this.#run.status}`)
    const isEnough = this.#latencies.length >= this.#run.least || now > this.#started + 10 * this.#run.ms
    const next = now < this.#end || !isEnough ? this.#next() : undefined
    if (next === undefined && --this.#busy === 0) this.#finish()
    return next
  }

  fail(failure: string): void {
    this.#done.resolve({ answers: 0, errors: 0, seconds: 0, p50: 0, p99: 0, cpu: 0, failure })
  }

  #next(): string | undefined {
    if (this.#run.once && this.#sent >= this.#templates.length) return undefined
    const template = this.#templates[this.#sent++ % this.#templates.length] ?? ''
    if (typeof template === 'string') return template
    return template[0] + String(++counted).padStart(counter.length, '0') + template[1]
  }

  #finish(): void {
    const seconds = (performance.now() - this.#started) / 1000
    const { user, system } = process.cpuUsage(this.#cpu)
    const sorted = Float64Array.from(this.#latencies).sort()
    const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0
    const [answers, errors] = [sorted.length, this.#errors]
    this.#done.resolve({ answers, errors, seconds, p50: at(0.5), p99: at(0.99), cpu: user + system })
  }
}

class Connection {
  readonly #socket: Socket
  #running: Running | undefined
  #sentAt = 0
  #status = 0
  /** Bytes of the body that are to come; undefined: its end is a last chunk. */
  #missing: number | undefined = 0
  #isInBody = false
  #isError = false
  #head = ''

  static open(port: number): Promise<Connection> {
    const { promise, resolve, reject } = Promise.withResolvers<Connection>()
    const connection = new Connection(port, () => resolve(connection), reject)
    return promise
  }

  private constructor(port: number, opened: () => void, failed: (error: Error) => void) {
    const buffer = Buffer.allocUnsafe(32 * 1024)
    const callback = (bytes: number) => {
      this.#receive(buffer, bytes)
      return true
    }
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, onread: { buffer, callback } }, opened)
    this.#socket.on('error', error => {
      failed(error)
      this.#running?.fail(error.message)
    })
    this.#socket.on('close', () => this.#running?.fail('The server closed a connection'))
  }

  send(request: string, running: Running): void {
    this.#running = running
    this.#sentAt = performance.now()
    this.#socket.write(request, 'latin1')
  }

  close(): void {
    this.#socket.removeAllListeners('close')
    this.#socket.destroy()
  }

  #receive(buffer: Buffer, bytes: number): void {
    let from = 0
    if (!this.#isInBody) {
      const before = this.#head.length
      this.#head += buffer.toString('latin1', 0, Math.min(bytes, 2048))
      const end = this.#head.indexOf('\r\n\r\n')
      if (end < 0) return
      from = end + 4 - before
      this.#status = Number(this.#head.slice(9, 12))
      this.#missing = lengthOf(this.#head)
      this.#isInBody = true
      this.#isError = buffer.toString('latin1', from, Math.min(bytes, from + errorStart.length)) === errorStart
      this.#head = ''
    }
    if (this.#missing === undefined) {
      // A body in chunks ends with an empty one; the benchmark's answers contain no such bytes themselves.
      if (buffer.toString('latin1', bytes - 5, bytes) !== '0\r\n\r\n') return
    } else {
      this.#missing -= bytes - from
      if (this.#missing > 0) return
    }
    this.#isInBody = false
    const now = performance.now()
    const next = this.#running?.answered(this.#status, this.#isError, now - this.#sentAt, now)
    if (next === undefined) return
    this.#sentAt = now
    this.#socket.write(next, 'latin1')
  }
}

function lengthOf(head: string): number | undefined {
  let at = head.indexOf('ontent-length: ')
  if (at < 0) at = head.indexOf('ontent-Length: ')
  if (at >= 0) return Number.parseInt(head.slice(at + 15, at + 25), 10)
  return head.includes('chunked') ? undefined : 0
}

let connections: readonly Connection[] = []

async function obey(order: Order): Promise<unknown> {
  if (order.do === 'run') return new Running(order).start(connections)
  for (const connection of connections) connection.close()
  connections = []
  if (order.do === 'connect') {
    connections = await Promise.all(Array.from({ length: order.connections }, () => Connection.open(order.port)))
  }
  return {}
}

process.on('message', async (order: Order) => {
  process.send?.(await obey(order).catch(error => ({ failure: String(error) })))
})
