import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { startApp, systemClock, systemRandomness, type ThreadApp } from '../app.ts'
import type { Config } from '../config.ts'
import type { Passwords } from '../core/ports.ts'
import { ThreadEventBus } from '../events/memory-event-bus.ts'
import { lastResort } from '../http/lifecycle.ts'
import { createLogger } from '../http/logging.ts'
import { keepTickShape, settle } from '../lib/v8.ts'
import { MemoryLimits } from '../limits/memory-limits.ts'
import { openEngine } from '../storage/database.ts'
import type { Common } from '../wiring/base.ts'
import { ThreadCalls } from './thread-calls.ts'

/** One of the threads that serve: a whole app. What exists once is in the main thread or in shared memory. */
export interface ServingData {
  /** From 0 on. The first thread does the work that is done once for all threads. */
  readonly index: number
  /** Differs between servers in one process, as tests have them. */
  readonly group: string
  readonly config: Config
  readonly limits: SharedArrayBuffer
}

const { index, group, config, limits } = workerData as ServingData
const port = parentPort as MessagePort
void keepTickShape()

/** Lines for the main thread, which writes those of all threads, so that they never mix. */
let lines = ''
const flush = () => {
  if (lines !== '') port.postMessage(lines)
  lines = ''
}
const write = (line: string) => {
  if (lines === '') setTimeout(flush, 5).unref() // a message for each line would cost more than the line
  lines += line
  if (lines.length > 32 * 1024) flush()
}
const logger = createLogger(config.logLevel, { write }).child({ thread: index + 1 })

let app: ThreadApp | undefined
const { promise: started, resolve } = Promise.withResolvers<ThreadApp>()
const main = new ThreadCalls(port, {
  // The code of all threads is loaded at the same time. With what the first one has found, the others start.
  start: async (found: Pick<Config, 'port' | 'maintenance'>, demoLoginWorks?: boolean) => {
    const own = { ...common, ...(demoLoginWorks !== undefined && { demoLoginWorks }) }
    app = await startApp({ ...config, ...found }, { ...dependencies, passwords, common: own })
    resolve(app)
    setImmediate(settle)
    return { url: app.url, demoLoginWorks: app.demoLoginWorks }
  },
  stop: (atOnce: boolean) => (atOnce ? app?.stopAtOnce() : app?.[Symbol.asyncDispose]()),
  maintenance: async (on: boolean) => (await started).setMaintenance(on),
  reloadKeys: async () => (await started).reloadKeys(),
  metrics: () => app?.metrics(),
  end: () => exit(0),
})

const exit = (code: number) => {
  flush()
  process.exit(code) // ends this thread only
}
const stop = async () => app?.stopAtOnce()
const fail = lastResort(logger, stop, exit)
process.on('uncaughtException', fail)
process.on('unhandledRejection', fail)

const passwords: Passwords = {
  hash: (...args) => main.call<string>('hash', args),
  matches: (...args) => main.call<boolean>('matches', args),
}
// If the main thread has ended, so does this one.
const connect = (port: MessagePort) => void main.call('connectWriter', [port], [port]).catch(() => {})
const common: Common = {
  threads: config.threads,
  isFirst: index === 0,
  open: async (options, parts) =>
    parts.use(await openEngine(config.database, options, { threads: config.threads, connect })),
  bus: new ThreadEventBus(`events ${group}`),
  limits: new MemoryLimits(systemClock, limits),
  stoppedListening: () => main.call('stoppedListening'),
  collectMetrics: () => main.call('collectMetrics'),
}
const dependencies = { logger, clock: systemClock, randomness: systemRandomness }
