import type { Config, DatabaseConfig } from '../config.ts'
import type { EventBus } from '../core/events.ts'
import type { Store } from '../core/store.ts'
import type { Tokens } from '../core/tokens/operations.ts'
import { Feed } from '../events/feed.ts'
import type { Executor } from '../graphql/execute.ts'
import { FanOut, type FanOutParts } from '../graphql/live/fan-out.ts'
import { Sockets } from '../graphql/live/sockets.ts'
import { bearerOf } from '../http/authentication.ts'
import type { TrustedProxies } from '../http/client-address.ts'
import { reportFailure } from '../http/errors.ts'
import { allowedOrigins } from '../http/origins.ts'
import { type RateLimit, socketLimit } from '../http/rate-limit.ts'
import type { RequestLog } from '../http/request-log.ts'
import type { Unread } from '../http/unread.ts'
import { during } from '../lib/waits.ts'
import type { JwtSigner } from '../security/tokens.ts'
import type { Base } from './base.ts'

/** Tells all threads and instances of new events. */
export async function openBus({ database }: Config, base: Base, parts: AsyncDisposableStack): Promise<EventBus> {
  const { common, randomness, logger } = base
  if (database.kind === 'sqlite' || database.pooler) return common.bus // LISTEN has no effect behind a pooler
  const warn = (message: string, cause?: string) => logger.warn({ cause }, message)
  const { PostgresEventBus } = await import('../events/postgres-event-bus.ts')
  return parts.use(new PostgresEventBus({ url: database.url, randomness, warn }))
}

interface SocketParts {
  readonly store: Store
  readonly bus: EventBus
  readonly signer: JwtSigner
  readonly tokens: Tokens
  readonly executor: Executor
  readonly rateLimit: RateLimit | undefined
  readonly proxies: TrustedProxies
  readonly unread: Unread
}

/** Connects the event log, the fan-out and the sockets. */
export async function openSockets(
  config: Config,
  { metrics, observer, clock, logger, requestLog }: Base,
  { store, bus, signer, tokens, executor, rateLimit, proxies, unread }: SocketParts,
  parts: AsyncDisposableStack,
): Promise<Sockets> {
  const feed = parts.use(new Feed({ log: store.events, bus, observer }))
  const fanOut = new FanOut({
    store,
    log: store.events,
    feed,
    observer: metrics.sockets,
    delivering: delivering(requestLog),
    now: () => feed.now(),
    groups: config.subscriptionGroups,
    groupsPerClient: config.subscriptionGroupsPerClient,
    readsAtOnce: eventReadsAtOnce(config.database),
    readMs: config.databaseTimeoutMs,
    report: error => reportFailure(error, logger),
  })
  const sockets = parts.use(
    new Sockets({
      executor,
      fanOut,
      clock,
      initTimeoutMs: config.socketInitTimeoutMs,
      authenticate: async authorization => tokens.authenticate(bearerOf(authorization)),
      isStillValid: user => tokens.isStillValid(user),
      isKnownKey: signedBy => signer.knows(signedBy),
      ...socketLimit(rateLimit),
      clientOf: request => proxies.keyOf(request),
      socketsPerClient: config.socketsPerClient,
      messagesPerSecond: config.socketMessagesPerSecond,
      isAllowedOrigin: allowedOrigins(config.corsOrigins),
      unread,
      observer: metrics.sockets,
      requestLog,
      report: error => reportFailure(error, logger),
    }),
  )
  const lose = () => {
    logger.error(
      'The database has lost events, as after a failover to a standby that was behind. All sockets are closed',
    )
    sockets.closeAll(1012, 'Events were lost')
  }
  await feed.start({ wake: event => fanOut.wake(event), revoke: userId => sockets.revoke(userId), lose })
  metrics.gauge('duet_sockets', 'Open WebSockets', () => sockets.size)
  metrics.gauge('duet_subscriptions', 'Subscriptions', () => fanOut.groups.members)
  metrics.gauge(
    'duet_subscription_groups',
    'Groups of subscriptions with the same topic and selection',
    () => fanOut.groups.size,
  )
  metrics.gauge(
    'duet_events_undelivered_age_seconds',
    'Age of the oldest event that is not delivered yet, or 0',
    () => {
      const now = feed.now()
      return Math.max(0, now - (feed.waitingSince ?? now), now - (fanOut.undeliveredSince ?? now)) / 1000
    },
    'max',
  )
  return sockets
}

/**
 * Runs a delivery, in a span of its own if it is traced. Of the slow ones of an event it logs one: thousands of groups may
 * get it.
 */
function delivering(log: RequestLog): FanOutParts['delivering'] {
  let logged = 0
  return async ({ kind: event, position, traceparent }, deliver) => {
    const waits = log.begin('deliver', event, traceparent)
    const begun = performance.now()
    const subscribers = await during(waits, deliver)
    const ms = performance.now() - begun
    const line = () => ({ event, subscribers, ms: Math.round(ms) })
    if (log.tell('event delivered', position > logged ? ms : 0, waits, 'minor', line)) logged = position
  }
}

/**
 * How many reads of events run at once. In PostgreSQL, each takes a connection, so only some of them are used. SQLite
 * reads on this thread, so this is how many run before other work gets its turn.
 */
function eventReadsAtOnce(database: DatabaseConfig): number {
  return database.kind === 'sqlite' ? 16 : Math.max(1, Math.min(4, database.poolMax >> 1))
}
