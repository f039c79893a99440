import { randomUUID } from 'node:crypto'
import type { MessagePort } from 'node:worker_threads'
import type { Logger } from 'pino'
import type { App } from '../app.ts'
import type { Config } from '../config.ts'
import type { Passwords } from '../core/ports.ts'
import { limitsMemory } from '../limits/memory-limits.ts'
import { readOrCreateKeys } from '../security/keys.ts'
import { SharedDatabase } from '../storage/shared-database.ts'
import { timeoutsOf } from '../storage/timeouts.ts'
import { givenKeys } from '../wiring/keys.ts'
import { holdPort } from './held-port.ts'
import { Rendezvous } from './rendezvous.ts'
import { Serving } from './serving.ts'
import type { Handlers } from './thread-calls.ts'
import { ThreadMetrics } from './thread-metrics.ts'

export interface ThreadsParts {
  readonly logger: Logger
  /** Writes lines that threads have logged. */
  readonly write: (lines: string) => void
  /** Called if threads end again and again. */
  readonly onGiveUp: (error: Error) => void
  /** All threads use this one, so that no more hashes run at once than with one thread. */
  readonly passwords: Passwords
}

/** A server with several threads that serve. This thread supervises them, and has what exists only once. */
export async function startThreads(config: Config, parts: ThreadsParts): Promise<App> {
  await using opened = new AsyncDisposableStack()
  const trouble = (message: string, err: unknown) => parts.logger.error({ err }, message)
  const given = await givenKeys(config) // keys are checked before the database is opened
  const database = opened.use(
    await SharedDatabase.claim(config.database, timeoutsOf(config.databaseTimeoutMs), config.threads, trouble),
  )
  const { address } = database.database
  // Created here, because threads that create them at the same time would create different ones.
  if (given === undefined && address.kind === 'sqlite') {
    await readOrCreateKeys(`${address.path}-keys.json`)
  }
  opened.use(await holdPort(config))
  const supervisor = new Supervisor(forThread(config, database), database, parts)
  opened.defer(() => supervisor.stop(true))
  const { url, demoLoginWorks } = await supervisor.start()
  const running = opened.move()
  let stopped: Promise<void> | undefined
  const stop = (atOnce: boolean) => {
    stopped ??= supervisor.stop(atOnce).then(() => running.disposeAsync())
    return stopped
  }
  return {
    url,
    demoLoginWorks,
    toggleMaintenance: () => supervisor.toggleMaintenance(),
    reloadKeys: () => supervisor.tellAll('reloadKeys'),
    stopAtOnce: () => stop(true),
    [Symbol.asyncDispose]: () => stop(false),
  }
}

/** The settings of one thread: its share of what the process may have. */
function forThread(config: Config, { database: { address } }: SharedDatabase): Config {
  const share = (bound: number) => Math.ceil(bound / config.threads)
  return {
    ...config,
    connectionsPerClient: share(config.connectionsPerClient),
    socketsPerClient: share(config.socketsPerClient),
    subscriptionGroups: share(config.subscriptionGroups),
    subscriptionGroupsPerClient: share(config.subscriptionGroupsPerClient),
    database:
      address.kind === 'sqlite'
        ? address
        : { ...address, poolMax: Math.max(1, Math.floor(address.poolMax / config.threads)) },
  }
}

class Supervisor {
  readonly #config: Config
  readonly #parts: ThreadsParts
  readonly #database: SharedDatabase
  readonly #group = randomUUID()
  readonly #memory = { limits: limitsMemory(), arrival: new SharedArrayBuffer(8) }
  readonly #meeting: Rendezvous
  readonly #threads = new Map<number, Serving>()
  readonly #metrics = new ThreadMetrics(this.#threads)
  readonly #demoLogin = Promise.withResolvers<boolean>()
  readonly #ends: number[] = []
  #maintenance: boolean
  #stopping: Promise<void> | undefined

  constructor(config: Config, database: SharedDatabase, parts: ThreadsParts) {
    this.#config = config
    this.#database = database
    this.#parts = parts
    this.#meeting = new Rendezvous(config)
    this.#maintenance = config.maintenance
  }

  async start() {
    for (let index = 0; index < this.#config.threads; index++) this.#launch(index)
    const all = await Promise.all(Array.from(this.#threads.values(), ({ started }) => started))
    for (const thread of this.#threads.values()) void thread.ended.then(() => this.#lost(thread))
    return { url: all[0]?.url ?? '', demoLoginWorks: all.some(({ demoLoginWorks }) => demoLoginWorks) }
  }

  #launch(index: number): Serving {
    const config = { ...this.#config, maintenance: this.#maintenance }
    const { threads } = config
    const { database } = this.#database
    const thread = new Serving({
      data: { index, threads, group: this.#group, config, database, memory: this.#memory },
      handlers: this.#handlersFor(index),
      onLog: this.#parts.write,
      onError: err => this.#parts.logger.error({ err, thread: index + 1 }, 'A serving thread failed'),
    })
    this.#threads.set(index, thread)
    thread.started.then(({ url }) => this.#meeting.started(index, url)).catch(() => {})
    return thread
  }

  #handlersFor(index: number): Handlers {
    return {
      connectWriter: (port: MessagePort) => this.#database.connect(port),
      hash: (password: string) => this.#parts.passwords.hash(password),
      matches: (password: string, hash: string | undefined) => this.#parts.passwords.matches(password, hash),
      mayListen: () => this.#meeting.mayListen(index),
      stoppedListening: () => this.#meeting.stoppedListening(this.#threads.size),
      collectMetrics: () => this.#metrics.collect(),
      foundDemoLogin: (works: boolean) => this.#demoLogin.resolve(works),
      demoLoginWorks: () => this.#demoLogin.promise,
    }
  }

  async tellAll(name: string, ...args: readonly unknown[]): Promise<void> {
    await Promise.all(Array.from(this.#threads.values(), thread => thread.call(name, ...args).catch(() => {})))
  }

  async toggleMaintenance(): Promise<void> {
    const maintenance = !this.#maintenance
    this.#maintenance = maintenance
    await this.tellAll('maintenance', maintenance)
    this.#parts.logger.warn({ maintenance }, 'Maintenance was toggled')
  }

  /** A thread has ended that should serve. Another one replaces it, unless that happens again and again. */
  #lost({ index }: Serving): void {
    this.#threads.delete(index)
    this.#metrics.forget(index)
    if (this.#stopping !== undefined) return
    const now = performance.now()
    this.#ends.push(now)
    if (this.#ends.filter(end => end > now - manyWithinMs).length > mostEnds) {
      this.#parts.onGiveUp(new Error('Serving threads end again and again'))
      return
    }
    this.#parts.logger.error({ thread: index + 1 }, 'A serving thread has ended. Another one replaces it')
    const next = this.#launch(index)
    next.started.catch(err => this.#parts.logger.error({ err, thread: index + 1 }, 'A serving thread could not start'))
    void next.ended.then(() => this.#lost(next))
  }

  stop(atOnce: boolean): Promise<void> {
    this.#stopping ??= this.#stopAll(atOnce)
    return this.#stopping
  }

  async #stopAll(atOnce: boolean): Promise<void> {
    await Promise.all(Array.from(this.#threads.values(), thread => thread.stop(atOnce, stopMs)))
  }
}

/** Longer than a thread takes for the slowest clients, so that the process exits within ten seconds. */
const stopMs = 9_000
const mostEnds = 3
const manyWithinMs = 60_000
