import { AssertionError } from 'node:assert'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { EngineKind, TestDatabase } from '../support/engines.ts'
import { ask } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { type DuetProcess, serveDuet } from '../support/process.ts'
import { metricOf, untilNoSocketIsLeft } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'

/** The state of a process. `silent` means that it runs but does not answer. */
export type State = 'ready' | 'not ready' | 'silent' | 'ended'

/** The service under test, as a separate process without rate limits. */
export class Target implements AsyncDisposable {
  readonly #database: TestDatabase
  readonly #process: DuetProcess
  readonly url: string
  readonly port: number
  /** Its output since the last call. */
  #printed = ''
  #marks = 0

  static async start(kind: EngineKind): Promise<Target> {
    await using parts = new AsyncDisposableStack()
    const database = parts.use(await kind.create())
    const duet = parts.use(serve(database))
    const target = new Target(database, duet, await duet.address())
    parts.move()
    return target
  }

  private constructor(database: TestDatabase, duet: DuetProcess, { url, port }: { url: string; port: number }) {
    this.#database = database
    this.#process = duet
    this.url = url
    this.port = port
    duet.child.stdout?.on('data', text => {
      this.#printed += text
    })
  }

  get #hasEnded(): boolean {
    const { exitCode, signalCode } = this.#process.child
    return exitCode !== null || signalCode !== null
  }

  /** Warnings of Node, or the message of an unexpected exit. */
  get stderr(): string {
    return this.#process.stderr
  }

  /** The state of the process, and its log lines since the last call. */
  async settle(): Promise<{ readonly state: State; readonly log: readonly string[] }> {
    const id = `mark-${++this.#marks}`
    const state = await this.#state(id)
    if (state === 'ready') await waitUntil(() => this.#printed.includes(`"requestId":"${id}"`) || this.#hasEnded)
    const log = this.#printed.split('\n').filter(line => line.startsWith('{'))
    this.#printed = ''
    return { state: this.#hasEnded ? 'ended' : state, log }
  }

  async #state(id: string): Promise<State> {
    try {
      const { status } = await ask(`${this.url}/health/ready`, { headers: { 'x-request-id': id } })
      return status === 200 ? 'ready' : 'not ready'
    } catch (error) {
      if (error instanceof AssertionError) return 'silent' // no answer in time
      await waitUntil(() => this.#hasEnded)
      return 'ended'
    }
  }

  /** Bytes in use without connections and after garbage collection. */
  async heapBytes(): Promise<number> {
    await this.untilIdle()
    this.#printed = ''
    this.#process.child.kill('SIGWINCH')
    const probe = () => /^\{"heapProbe":(\d+)\}$/m.exec(this.#printed)?.[1]
    await waitUntil(() => probe() !== undefined)
    return Number(probe())
  }

  /** Waits until all traces of clients are gone: no socket, no subscription, and no request except this one. */
  async untilIdle(): Promise<void> {
    await untilNoSocketIsLeft(this)
    await waitUntil(async () => (await metricOf(this, 'duet_http_requests_in_flight')) === 1)
  }

  openFiles(): Promise<number> {
    return metricOf(this, 'process_open_fds')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]()
    await this.#database[Symbol.asyncDispose]()
  }
}

function serve({ kind, location }: TestDatabase): DuetProcess {
  return serveDuet({
    DATABASE_URL: kind === 'sqlite' ? `sqlite:${location}` : location,
    TOKEN_KEYS: tokenKeys,
    DEMO_DATA: 'true',
    // Nobody listens there. Otherwise mails would be in the log.
    SMTP_URL: 'smtp://127.0.0.1:1',
    MAIL_FROM: 'duet@example.com',
    PUBLIC_URL: 'http://127.0.0.1:4000',
    RATE_LIMIT_MAX: '0',
    LOGIN_LIMIT_MAX: '0',
    SOCKET_MESSAGES_PER_SECOND: '0',
    NODE_OPTIONS: `--expose-gc --import=${pathToFileURL(join(import.meta.dirname, 'heap-probe.ts'))}`,
  })
}
