import type { Config } from '../config.ts'
import type { EventBus } from '../core/events.ts'
import type { Clock } from '../core/ports.ts'
import { MemoryEventBus } from '../events/memory-event-bus.ts'
import { MemoryLimits } from '../limits/memory-limits.ts'
import type { Siblings } from '../server/lifecycle.ts'
import type { MetricsOfThread } from '../server/metrics.ts'
import { type OpenDatabase, type OpenOptions, openDatabase } from '../storage/database.ts'

/** The parts that the threads of one process share. */
export interface Shared {
  readonly threads: number
  /** Whether this thread does the work that is done once for all threads. */
  readonly isFirst: boolean
  open(options: OpenOptions): Promise<OpenDatabase>
  /** Wakes all threads. On PostgreSQL, its notifications do that. */
  readonly bus: EventBus
  readonly limits: MemoryLimits
  /** Ensures the demo data once for all threads. Returns whether its login works. */
  demoLogin(ensure: () => Promise<boolean>): Promise<boolean>
  /** Resolves when all threads are ready to listen. */
  mayListen(): Promise<{ readonly port: number; readonly reusePort: boolean }>
  readonly siblings?: Siblings
  /** The metrics of all threads. */
  readonly collectMetrics?: () => Promise<readonly MetricsOfThread[]>
}

/** The parts of a process with one serving thread, which shares nothing. */
export function alone({ database, port }: Config, clock: Clock): Shared {
  return {
    threads: 1,
    isFirst: true,
    open: options => openDatabase(database, options),
    bus: new MemoryEventBus(),
    limits: new MemoryLimits(clock),
    demoLogin: ensure => ensure(),
    mayListen: async () => ({ port, reusePort: false }),
  }
}
