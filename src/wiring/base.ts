import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Clock, Passwords, Randomness, StoreObserver } from '../core/ports.ts'
import type { Metrics } from '../server/metrics.ts'
import type { ThreadShare } from './thread-share.ts'

/** What most parts of the app need. */
export interface Base {
  readonly logger: Logger
  readonly clock: Clock
  readonly randomness: Randomness
  readonly passwords: Passwords
  readonly metrics: Metrics
  readonly observer: StoreObserver
  readonly share: ThreadShare
}

export const systemClock: Clock = { now: Date.now }
export const systemRandomness: Randomness = { id: randomUUID }
