import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Question, Reading } from '../probe.ts'
import { cpuOf, memoryOf } from './processes.ts'

/** A server in a process of its own, which prints an address ending in /health once it listens. */
export class BenchServer implements AsyncDisposable {
  readonly port: number
  readonly #process: ChildProcess
  readonly #asked = new Map<number, (reading: Reading) => void>()
  #lastQuestion = 0

  /** Starts a program of Node's. */
  static start(
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    onOutput?: (text: string) => void,
  ): Promise<BenchServer> {
    return BenchServer.run([process.execPath, ...args], env, onOutput)
  }

  /** Starts any program. `onOutput` gets what it prints after its address. */
  static async run(
    [program = '', ...args]: readonly string[],
    env: Readonly<Record<string, string>> = {},
    onOutput: (text: string) => void = () => {},
  ): Promise<BenchServer> {
    const child = spawn(program, args, {
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
    throw new Error(`No server started: ${[program, ...args].join(' ')} ${printed}`)
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
    return cpuOf(this.pid)
  }

  /** Bytes of memory that the process holds. */
  memory(): number {
    return memoryOf(this.pid)
  }

  /** Bytes that the process holds when it has done all its work and collected its garbage. */
  async idleMemory(): Promise<number> {
    let before = Number.NEGATIVE_INFINITY
    for (let tries = 0; tries < 100 && this.cpu() - before > idleMicroseconds; tries++) {
      before = this.cpu()
      await delay(100)
    }
    await this.read({ gc: true })
    return this.memory()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.exit !== undefined) return
    const gone = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await gone
  }
}

/** What a server without work uses of its CPU in a tenth of a second, at most. */
const idleMicroseconds = 3000

/** Arguments of a server whose `idleMemory` can be read. */
export const collected: readonly string[] = ['--expose-gc', '--import', join(import.meta.dirname, 'collector.ts')]

/** Arguments of a server that can be asked by `read`. */
export const probed: readonly string[] = ['--import', join(import.meta.dirname, '..', 'probe.ts'), '--expose-gc']
