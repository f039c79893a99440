import { type MessagePort, workerData } from 'node:worker_threads'
import { startApp, systemClock, systemRandomness, type ThreadApp } from '../app.ts'
import type { Config } from '../config.ts'
import type { Passwords } from '../core/ports.ts'
import { toSent } from '../core/sent-error.ts'
import { ThreadEventBus } from '../events/thread-event-bus.ts'
import { keepTickShape, settle } from '../lib/v8.ts'
import { MemoryLimits } from '../limits/memory-limits.ts'
import { lastResort } from '../server/last-resort.ts'
import type { Siblings } from '../server/lifecycle.ts'
import { createLogger } from '../server/logging.ts'
import type { MetricsOfThread } from '../server/metrics.ts'
import { openShared, type ThreadDatabase } from '../storage/shared-database.ts'
import type { Shared } from '../wiring/shared.ts'
import { LogLines } from './log-lines.ts'
import { ThreadCalls } from './thread-calls.ts'

/** One of the threads that serve: a whole app, whose shared parts are in the main thread or in shared memory. */
export interface ServingData {
  /** From 0 on. The first thread does the work that is done once for all threads. */
  readonly index: number
  readonly threads: number
  /** Differs between servers in one process, as tests have them. */
  readonly group: string
  readonly config: Config
  readonly database: ThreadDatabase
  /** Shared by all threads. `arrival`: the time of the latest one, in nanoseconds of the system's clock. */
  readonly memory: { readonly limits: SharedArrayBuffer; readonly arrival: SharedArrayBuffer }
  readonly port: MessagePort
}

export interface Started {
  readonly url: string
  readonly demoLoginWorks: boolean
}

const { index, threads, group, config, database, memory, port } = workerData as ServingData
void keepTickShape()
const owner = index + 1
const lines = new LogLines(port)
const logger = createLogger(config.logLevel, lines).child({ thread: owner })
let app: ThreadApp | undefined
const ready = Promise.withResolvers<ThreadApp>()
const main = new ThreadCalls(port, {
  stop: (atOnce: boolean) => (atOnce ? app?.stopAtOnce() : app?.[Symbol.asyncDispose]()),
  maintenance: async (on: boolean) => (await ready.promise).setMaintenance(on),
  reloadKeys: async () => (await ready.promise).reloadKeys(),
  metrics: () => app?.metrics(),
  end: () => exit(0),
})

const exit = (code: number) => {
  lines.flush()
  process.exit(code) // ends this thread only
}
const stop = async () => app?.stopAtOnce()
const fail = lastResort({ logger, stop, exit, timeoutMs: 10_000 })
process.on('uncaughtException', fail)
process.on('unhandledRejection', fail)

const passwords: Passwords = {
  hash: (...args) => main.call<string>('hash', args),
  matches: (...args) => main.call<boolean>('matches', args),
}
const arrival = new BigInt64Array(memory.arrival)
const siblings: Siblings = {
  arrived: () => {
    Atomics.store(arrival, 0, process.hrtime.bigint())
  },
  silence: () => Number(process.hrtime.bigint() - Atomics.load(arrival, 0)) / 1e6,
  stopped: () => main.call('stoppedListening'),
}

const shared: Shared = {
  threads,
  isFirst: index === 0,
  // If the main thread has ended, so does this one.
  open: options =>
    openShared(database, options, port => void main.call('connectWriter', [port], [port]).catch(() => {})),
  bus: new ThreadEventBus(`events ${group}`),
  limits: new MemoryLimits(systemClock, memory.limits),
  // The first thread writes the demo data and tries its login.
  demoLogin: async ensure => {
    if (index > 0) return main.call<boolean>('demoLoginWorks')
    const works = await ensure()
    await main.call('foundDemoLogin', [works])
    return works
  },
  mayListen: () => main.call('mayListen'),
  siblings,
  collectMetrics: () => main.call<MetricsOfThread[]>('collectMetrics'),
}

try {
  app = await startApp(config, { logger, clock: systemClock, randomness: systemRandomness, passwords, shared })
  ready.resolve(app)
  await main.call('started', [{ url: app.url, demoLoginWorks: app.demoLoginWorks } satisfies Started])
} catch (error) {
  await main.call('failed', [toSent(error)])
  exit(1)
}
await settle()
