import assert from 'node:assert/strict'
import { startTestApp } from '../support/app.ts'
import type { TestDatabase } from '../support/engines.ts'
import { onlyInFull } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { type DuetProcess, serveDuet } from '../support/process.ts'

/** Two servers on one database, as behind a load balancer. */
export async function startTwo(database: Place, parts: AsyncDisposableStack, env: Env = {}): Promise<[Server, Server]> {
  const start = async () => parts.use(await startServer(database, env))
  return await Promise.all([start(), start()])
}

type Place = Pick<TestDatabase, 'url'>
type Env = Readonly<Record<string, string>>

export type Server = Pick<Instance, 'url' | 'faults' | 'output' | 'stop'> & AsyncDisposable

/** A server that no test kills. The short form runs in this process, because a process takes a second to start. */
export async function startServer(database: Place, env: Env = {}): Promise<Server> {
  if (onlyInFull === false) return await Instance.start(database, env)
  const { app, url, logs } = await startTestApp(settingsOf(database, env))
  return {
    url,
    get faults() {
      return logs.filter(({ level }) => level === 50).map(line => JSON.stringify(line))
    },
    get output() {
      return JSON.stringify(logs)
    },
    stop: async () => await app[Symbol.asyncDispose](),
    [Symbol.asyncDispose]: () => app.stopAtOnce(),
  }
}

function settingsOf({ url }: Place, env: Env): Env {
  return { DATABASE_URL: url, TOKEN_KEYS: tokenKeys, RATE_LIMIT_MAX: '0', LOG_LEVEL: 'error', ...env }
}

/** A process of the real program that serves a database, without a rate limit. */
export class Instance implements AsyncDisposable {
  readonly url: string
  readonly #process: DuetProcess

  static async start(database: Place, env: Env = {}): Promise<Instance> {
    const duet = serveDuet(settingsOf(database, env))
    try {
      const { url } = await duet.address()
      assert.equal((await ask(`${url}/health/ready`)).status, 200)
      return new Instance(duet, url)
    } catch (error) {
      await duet[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(duet: DuetProcess, url: string) {
    this.#process = duet
    this.url = url
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

  /** Of a signal that ends it, the disposal waits for its end. */
  signal(signal: NodeJS.Signals): void {
    this.#process.child.kill(signal)
  }

  /** Ends the process as operators do. */
  async stop(): Promise<void> {
    this.signal('SIGTERM')
    assert.equal((await this.#process.outcome()).code, 0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]()
  }
}
