import { AssertionError } from 'node:assert'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { EngineKind, TestDatabase } from '../support/engines.ts'
import { ask } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { type DuetProcess, serveDuet } from '../support/process.ts'
import { metricOf, untilNoSocketIsLeft } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'

/** The service under test, as a separate process without rate limits. */
export class Target implements AsyncDisposable {
  readonly #parts: AsyncDisposableStack
  readonly #process: DuetProcess
  readonly url: string
  readonly port: number
  /** How much of its output was looked at. */
  #seen = 0
  #marks = 0

  static async start(kind: EngineKind): Promise<Target> {
    await using parts = new AsyncDisposableStack()
    const duet = serve(parts.use(await kind.create()))
    return new Target(parts.use(duet), await duet.address(), parts.move())
  }

  private constructor(duet: DuetProcess, { url, port }: { url: string; port: number }, parts: AsyncDisposableStack) {
    this.#process = duet
    this.#parts = parts
    this.url = url
    this.port = port
  }

  get #hasEnded(): boolean {
    const { exitCode, signalCode } = this.#process.child
    return exitCode !== null || signalCode !== null
  }

  /** The problem with the process, if there is one, and its log lines since the last call. */
  async settle(): Promise<{ readonly problem: string | undefined; readonly log: readonly string[] }> {
    const id = `mark-${++this.#marks}`
    const problem = await this.#problem(id)
    const printed = () => this.#process.stdout.slice(this.#seen)
    if (problem === undefined) await waitUntil(() => printed().includes(`"requestId":"${id}"`) || this.#hasEnded)
    const log = printed()
    this.#seen += log.length
    return { problem, log: log.split('\n').filter(line => line.startsWith('{')) }
  }

  async #problem(id: string): Promise<string | undefined> {
    const { stderr } = this.#process // warnings of Node, or the message of an unexpected exit
    try {
      const { status } = await ask(`${this.url}/health/ready`, { headers: { 'x-request-id': id } })
      if (status !== 200) return `the process is not ready: ${stderr}`
      return stderr === '' ? undefined : `a message on stderr: ${stderr.slice(0, 1500)}`
    } catch (error) {
      if (error instanceof AssertionError) return `the process runs, but does not answer: ${stderr}`
      await waitUntil(() => this.#hasEnded)
      return `the process has ended: ${stderr.slice(-1500)}`
    }
  }

  /** Bytes in use without connections and after garbage collection. */
  async heapBytes(): Promise<number> {
    await this.untilIdle()
    const from = this.#process.stdout.length
    this.#process.child.kill('SIGWINCH')
    const probe = () => /^\{"heapProbe":(\d+)\}$/m.exec(this.#process.stdout.slice(from))?.[1]
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

  [Symbol.asyncDispose](): Promise<void> {
    return this.#parts.disposeAsync()
  }
}

function serve({ url }: TestDatabase): DuetProcess {
  return serveDuet({
    DATABASE_URL: url,
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
