import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { type Config, ConfigError } from '../config.ts'
import type { EventBus } from '../core/events.ts'
import type { Clock, Passwords, Randomness, StoreObserver } from '../core/ports.ts'
import { MemoryEventBus } from '../events/memory-event-bus.ts'
import type { Metrics, MetricsOfThread } from '../http/metrics.ts'
import { RequestLog } from '../http/request-log.ts'
import { MemoryLimits } from '../limits/memory-limits.ts'
import { readKeys, type TokenKeys } from '../security/keys.ts'
import { type OpenDatabase, type OpenOptions, openDatabase } from '../storage/database.ts'

/** What most parts of the app need. */
export interface Base {
  readonly logger: Logger
  readonly clock: Clock
  readonly randomness: Randomness
  readonly passwords: Passwords
  readonly metrics: Metrics
  readonly observer: StoreObserver
  readonly requestLog: RequestLog
  readonly common: Common
}

/** With traces if there is an endpoint for them. */
export async function openRequestLog(config: Config, logger: Logger, parts: AsyncDisposableStack): Promise<RequestLog> {
  const { tracesEndpoint } = config
  if (tracesEndpoint === undefined) return new RequestLog(logger, config)
  const { Tracing } = await import('../tracing/tracing.ts')
  const tracing = parts.use(new Tracing({ ...config, tracesEndpoint }, () => logger.warn('Traces could not be sent')))
  return new RequestLog(logger, { ...config, beginSpan: (...about) => tracing.begin(...about) })
}

/** Reads the keys that `TOKEN_KEYS` contains or names. */
export async function givenKeys({ tokenKeys, database }: Config): Promise<TokenKeys | undefined> {
  if (tokenKeys !== undefined) return readKeys(tokenKeys)
  if (database.kind === 'sqlite') return undefined
  throw new ConfigError('TOKEN_KEYS: is needed with PostgreSQL; "npm run -s duet -- keys generate" prints a set')
}

export const systemClock: Clock = { now: Date.now }
export const systemRandomness: Randomness = { id: randomUUID }

/** What a thread has in common with the other threads of its process. */
export interface Common {
  readonly threads: number
  /** Whether this thread does the work that is done once for all threads. */
  readonly isFirst: boolean
  /** `parts` gets what is to be disposed. */
  open(options: OpenOptions, parts: AsyncDisposableStack): Promise<OpenDatabase>
  /** Wakes all threads. On PostgreSQL, its notifications do that. */
  readonly bus: EventBus
  readonly limits: MemoryLimits
  /** Whether the demo login works, if another thread has tried it. */
  readonly demoLoginWorks?: boolean
  /** This thread no longer listens. Resolves when none does. */
  stoppedListening?(): Promise<void>
  /** The metrics of all threads. */
  collectMetrics?(): Promise<readonly MetricsOfThread[]>
}

/** For a process with one thread. */
export function alone({ database }: Config, clock: Clock): Common {
  return {
    threads: 1,
    isFirst: true,
    open: (options, parts) => openDatabase(database, options, parts),
    bus: new MemoryEventBus(),
    limits: new MemoryLimits(clock),
  }
}
