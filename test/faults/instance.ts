import assert from 'node:assert/strict'
import type { TestDatabase } from '../support/engines.ts'
import { ask } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { type DuetProcess, serveDuet } from '../support/process.ts'

/** Two servers on one database, as behind a load balancer. */
export async function startTwo(
  database: Place,
  parts: AsyncDisposableStack,
  env: Readonly<Record<string, string>> = {},
): Promise<[Instance, Instance]> {
  const start = async () => parts.use(await Instance.start(database, env))
  return await Promise.all([start(), start()])
}

type Place = Pick<TestDatabase, 'kind' | 'location'>

/** A process of the real program that serves a database, without a rate limit. */
export class Instance implements AsyncDisposable {
  readonly url: string
  readonly port: number
  /** Milliseconds from the start of the process until it was ready. */
  readonly readyMs: number
  readonly #process: DuetProcess

  static async start({ kind, location }: Place, env: Readonly<Record<string, string>> = {}): Promise<Instance> {
    const started = performance.now()
    const duet = serveDuet({
      DATABASE_URL: kind === 'sqlite' ? `sqlite:${location}` : location,
      TOKEN_KEYS: tokenKeys,
      RATE_LIMIT_MAX: '0',
      LOG_LEVEL: 'error',
      ...env,
    })
    try {
      const { url, port } = await duet.address()
      assert.equal((await ask(`${url}/health/ready`)).status, 200)
      return new Instance(duet, url, port, performance.now() - started)
    } catch (error) {
      await duet[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(duet: DuetProcess, url: string, port: number, readyMs: number) {
    this.#process = duet
    this.url = url
    this.port = port
    this.readyMs = readyMs
  }

  /** The log lines of internal errors, which have level 50. */
  get faults(): readonly string[] {
    return this.#process.stdout.split('\n').filter(line => line.includes('"level":50'))
  }

  /** Everything that it printed, including the log. */
  get output(): string {
    return this.#process.stdout + this.#process.stderr
  }

  get runs(): boolean {
    const { exitCode, signalCode } = this.#process.child
    return exitCode === null && signalCode === null
  }

  /** Kills the process with SIGKILL. The disposal waits for its end. */
  kill(): void {
    this.#process.child.kill('SIGKILL')
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.child.kill(signal)
  }

  /** Waits until the process has ended, and returns its exit code. */
  async ended(): Promise<number | null> {
    return (await this.#process.outcome()).code
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]()
  }
}
