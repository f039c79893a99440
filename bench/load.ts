import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Question, Reading } from './probe.ts'

/** A server in a process of its own, which prints an address ending in /health once it listens. */
export class BenchServer implements AsyncDisposable {
  readonly port: number
  readonly #process: ChildProcess
  readonly #asked = new Map<number, (reading: Reading) => void>()
  #lastQuestion = 0

  /** `onOutput` gets what it prints after that. */
  static async start(
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    onOutput: (text: string) => void = () => {},
  ): Promise<BenchServer> {
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    })
    if (child.stdout === null) throw new Error('No output to read')
    let printed = ''
    for await (const text of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
      printed += text
      const port = /http:\/\/[\d.]+:(\d+)\/health/.exec(printed)?.[1]
      if (port !== undefined) {
        child.stdout.on('data', onOutput)
        return new BenchServer(child, Number(port))
      }
    }
    throw new Error(`No server started: ${printed}`)
  }

  private constructor(child: ChildProcess, port: number) {
    this.#process = child
    this.port = port
    child.on('message', (reading: Reading) => this.#asked.get(reading.id)?.(reading))
  }

  get pid(): number {
    return this.#process.pid ?? 0
  }

  /** How it ended, if it did. */
  get exit(): string | undefined {
    const { exitCode, signalCode } = this.#process
    return exitCode === null ? (signalCode ?? undefined) : `code ${exitCode}`
  }

  /** What the process says of itself. It must have been started with `probed`. */
  async read({ gc = false } = {}): Promise<Reading> {
    const { promise, resolve, reject } = Promise.withResolvers<Reading>()
    const id = ++this.#lastQuestion
    const ended = () => reject(new Error(`The server ended: ${this.exit}`))
    if (this.exit !== undefined) ended()
    this.#process.once('exit', ended)
    this.#asked.set(id, resolve)
    this.#process.send({ id, gc } satisfies Question)
    try {
      return await promise
    } finally {
      this.#process.off('exit', ended)
      this.#asked.delete(id)
    }
  }

  /** Microseconds of CPU that the process has used, all threads together. */
  cpu(): number {
    const stat = readFileSync(`/proc/${this.#process.pid}/stat`, 'utf8')
    const [, , ...fields] = stat.slice(stat.lastIndexOf(')')).split(' ')
    return (Number(fields[10]) + Number(fields[11])) * 10_000
  }

  /** Bytes of memory that the process holds. */
  memory(): number {
    const status = readFileSync(`/proc/${this.#process.pid}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.exit !== undefined) return
    const gone = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await gone
  }
}

/** Arguments of a server that can be asked by `read`. */
export const probed: readonly string[] = ['--import', join(import.meta.dirname, 'probe.ts'), '--expose-gc']

/** Sends one request after another on each of so many connections, and counts whole answers. */
export async function load(
  port: number,
  request: string | (() => string),
  connections: number,
  ms: number,
): Promise<number> {
  const next = typeof request === 'string' ? () => request : request
  const end = performance.now() + ms
  let answers = 0
  const client = (socket: Socket) =>
    new Promise<void>((resolve, reject) => {
      let received = Buffer.alloc(0)
      socket.on('error', reject)
      socket.on('data', data => {
        received = received.length === 0 ? data : Buffer.concat([received, data])
        const head = received.indexOf('\r\n\r\n')
        const length = /content-length: (\d+)/i.exec(received.toString('latin1', 0, head))?.[1]
        if (head < 0 || received.length < head + 4 + Number(length ?? 0)) return
        if (received[9] !== 0x32 && received[9] !== 0x33) return reject(new Error(received.toString('utf8')))
        received = Buffer.alloc(0)
        answers++
        if (performance.now() < end) socket.write(next())
        else {
          socket.end()
          resolve()
        }
      })
      socket.write(next())
    })
  await Promise.all(Array.from({ length: connections }, () => client(connect(port, '127.0.0.1').setNoDelay())))
  return answers
}

/** Loads servers in turn with the same request and prints the CPU that each spends on one, the last being the measure. */
export async function compareCpu(
  servers: Readonly<Record<string, BenchServer>>,
  request: string | (() => string),
  { rounds = 25, connections = 16 } = {},
): Promise<void> {
  const spent = Object.entries(servers).map(([name, server]) => ({ name, server, cpu: 0, answers: 0 }))
  for (const { server } of spent) await load(server.port, request, connections, 2000) // warm
  for (let round = 0; round < rounds; round++) {
    for (const each of spent) {
      const before = each.server.cpu()
      each.answers += await load(each.server.port, request, connections, 400)
      each.cpu += each.server.cpu() - before
    }
  }
  const costs = spent.map(({ cpu, answers }) => cpu / answers)
  for (const [index, { name }] of spent.entries()) {
    const cost = costs[index] ?? 0
    const ratio = cost / (costs.at(-1) ?? 1)
    console.log(`${name.padEnd(20)} ${cost.toFixed(1).padStart(7)} µs of CPU per request  ${ratio.toFixed(2)} x`)
  }
}
