import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { MessagePort } from 'node:worker_threads'
import type { Logger } from 'pino'
import type { App } from '../app.ts'
import type { Config } from '../config.ts'
import type { Passwords } from '../core/ports.ts'
import type { MetricsOfThread } from '../http/metrics.ts'
import { limitsMemory } from '../limits/memory-limits.ts'
import { type SharedDatabase, shareDatabase } from '../storage/database.ts'
import { timeoutsOf } from '../storage/timeouts.ts'
import { givenKeys } from '../wiring/base.ts'
import { Serving } from './serving.ts'

export interface ThreadsParts {
  readonly logger: Logger
  readonly write: (lines: string) => void
  /** Called when the first thread serves; others may still be starting. */
  readonly onServing?: () => void
  /** Called if threads end again and again. */
  readonly onGiveUp: (error: Error) => void
  /** All threads use this one, so that no more hashes run at once than with one thread. */
  readonly passwords: Passwords
}

export async function startThreads(config: Config, parts: ThreadsParts): Promise<App> {
  const trouble = (message: string, err: unknown) => parts.logger.error({ err }, message)
  await givenKeys(config) // keys are checked before the database is opened
  const timeouts = timeoutsOf(config.databaseTimeoutMs)
  const database = await shareDatabase(config.database, timeouts, trouble)
  const supervisor = new Supervisor(partOf(config, database), database, parts)
  try {
    await requireFreePort(config)
    await supervisor.start()
    return supervisor
  } catch (error) {
    await supervisor.stopAtOnce()
    throw error
  }
}

/** The settings of one thread: its part of what the process may have. */
function partOf(config: Config, { address }: SharedDatabase): Config {
  const part = (bound: number) => Math.ceil(bound / config.threads)
  const database =
    address.kind === 'sqlite'
      ? address
      : { ...address, poolMax: Math.max(1, Math.floor(address.poolMax / config.threads)) }
  return {
    ...config,
    database,
    connectionsPerClient: part(config.connectionsPerClient),
    socketsPerClient: part(config.socketsPerClient),
    subscriptionGroups: part(config.subscriptionGroups),
    subscriptionGroupsPerClient: part(config.subscriptionGroupsPerClient),
  }
}

/**
 * Threads share their port, and so would two servers: each would get a part of the connections, and nobody notice. To
 * listen for a moment would tell as much, but a proxy that waits for this server would send it a request.
 */
async function requireFreePort({ host, port }: Config): Promise<void> {
  if (port === 0) return
  const connection = connect({ host, port })
  const signal = AbortSignal.timeout(connectMs)
  const answer = await once(connection, 'connect', { signal }).catch(() => undefined)
  connection.destroy()
  if (answer !== undefined)
    throw Object.assign(new Error('The port is in use'), { code: 'EADDRINUSE', syscall: 'listen' })
}

/** Supervises the threads from the main thread, and has what exists only once. */
class Supervisor implements App {
  url = ''
  demoLoginWorks = false
  /** With the port that the first thread has found, and the present state of maintenance. */
  #config: Config
  readonly #parts: ThreadsParts
  readonly #database: SharedDatabase
  readonly #group = randomUUID()
  readonly #limits = limitsMemory()
  readonly #threads = new Map<number, Serving>()
  readonly #ends: number[] = []
  #stopping: Promise<void> | undefined
  #listening: number
  readonly #noneListens = Promise.withResolvers<void>()

  constructor(config: Config, database: SharedDatabase, parts: ThreadsParts) {
    this.#config = config
    this.#database = database
    this.#parts = parts
    this.#listening = config.threads
  }

  /** The first thread finds the port, creates the keys, writes the demo data and tries its login, for all. */
  async start(): Promise<void> {
    const [first, ...others] = Array.from({ length: this.#config.threads }, (_, index) => this.#launch(index))
    if (first === undefined) throw new Error('There must be a thread')
    const { url, demoLoginWorks } = await first.start(this.#config)
    this.#parts.onServing?.()
    this.url = url
    this.demoLoginWorks = demoLoginWorks
    this.#config = { ...this.#config, port: Number(new URL(url).port) }
    await Promise.all(others.map(thread => thread.start(this.#config, demoLoginWorks)))
    for (const thread of this.#threads.values()) void thread.ended.then(() => this.#lost(thread))
  }

  #launch(index: number): Serving {
    const { passwords, logger, write } = this.#parts
    const data = { index, group: this.#group, config: this.#config, limits: this.#limits }
    const handlers = {
      connectWriter: (port: MessagePort) => this.#database.connect(port),
      hash: (password: string) => passwords.hash(password),
      matches: (password: string, hash: string | undefined) => passwords.matches(password, hash),
      stoppedListening: () => this.#stoppedListening(),
      collectMetrics: () => this.#collectMetrics(),
    }
    const failed = (err: unknown) => logger.error({ err, thread: index + 1 }, 'A serving thread failed')
    const thread = new Serving(data, handlers, write, failed)
    this.#threads.set(index, thread)
    return thread
  }

  /** Resolves when no thread listens, or after a moment: one of them may have ended. */
  async #stoppedListening(): Promise<void> {
    if (--this.#listening === 0) this.#noneListens.resolve()
    await Promise.race([this.#noneListens.promise, delay(mostListeningMs, undefined, { ref: false })])
  }

  #ofAll<Result>(ask: (thread: Serving) => Promise<Result>): Promise<Result[]> {
    return Promise.all(Array.from(this.#threads.values(), ask))
  }

  async #collectMetrics(): Promise<readonly MetricsOfThread[]> {
    const told = await this.#ofAll(thread => thread.metrics())
    // A thread that has ended cannot count that. All others count 0.
    const values = [{ value: this.#ends.length, labels: {} }]
    const restarts = { name: 'duet_thread_restarts_total', aggregator: 'sum', values } as const
    return [...told.filter(metrics => metrics !== undefined), [restarts]]
  }

  async reloadKeys(): Promise<void> {
    await this.#ofAll(thread => thread.call('reloadKeys').catch(() => {}))
  }

  async toggleMaintenance(): Promise<void> {
    const maintenance = !this.#config.maintenance
    this.#config = { ...this.#config, maintenance }
    await this.#ofAll(thread => thread.call('maintenance', [maintenance]).catch(() => {}))
    this.#parts.logger.warn({ maintenance }, 'Maintenance was toggled')
  }

  /** A thread has ended that should serve. Another one replaces it, unless that happens again and again. */
  #lost({ index }: Serving): void {
    this.#threads.delete(index)
    if (this.#stopping !== undefined) return
    const now = performance.now()
    this.#ends.push(now)
    if (this.#ends.filter(end => end > now - manyWithinMs).length > mostEnds) {
      this.#parts.onGiveUp(new Error('Serving threads end again and again'))
      return
    }
    const { logger } = this.#parts
    logger.error({ thread: index + 1 }, 'A serving thread has ended. Another one replaces it')
    const next = this.#launch(index)
    next
      .start(this.#config, this.demoLoginWorks)
      .catch(err => logger.error({ err, thread: index + 1 }, 'A serving thread could not start'))
    void next.ended.then(() => this.#lost(next))
  }

  stopAtOnce(): Promise<void> {
    return this.#stop(true)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stop(false)
  }

  #stop(atOnce: boolean): Promise<void> {
    const stopped = (thread: Serving) => thread.stop(atOnce, stopMs)
    this.#stopping ??= this.#ofAll(stopped).then(() => this.#database[Symbol.asyncDispose]())
    return this.#stopping
  }
}

/** Longer than a thread takes for the slowest clients, so that the process exits within ten seconds. */
const stopMs = 9_000
const connectMs = 1_000
const mostListeningMs = 700
const mostEnds = 3
const manyWithinMs = 60_000
