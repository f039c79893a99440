import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { Janitor } from './core/janitor.ts'
import type { Clock, Passwords, Randomness } from './core/ports.ts'
import { Executor } from './graphql/execute.ts'
import { showGraphiql } from './graphql/http/graphiql/page.ts'
import { serveGraphQL } from './graphql/http/routes.ts'
import { loadSchema } from './graphql/language/schema.ts'
import { Links } from './rest/links.ts'
import { serveRest } from './rest/serve.ts'
import { readOrCreateKeys } from './security/keys.ts'
import { JwtSigner } from './security/tokens.ts'
import { authentication } from './server/authentication.ts'
import { clientKey, TrustedProxies } from './server/client-address.ts'
import { serveHealth } from './server/health.ts'
import { servePublicKeys } from './server/keys.ts'
import { Lifecycle } from './server/lifecycle.ts'
import { Metrics, type MetricsOfThread, serveMetrics } from './server/metrics.ts'
import { exemptLimit } from './server/rate-limit.ts'
import { refuseOtherMethods } from './server/routing.ts'
import { createServer } from './server/server.ts'
import { shutDown } from './server/shutdown.ts'
import { mostUnread, Unread } from './server/unread.ts'
import { createStore } from './storage/store.ts'
import { timeoutsOf } from './storage/timeouts.ts'
import { ensureDemoData } from './wiring/demo-data.ts'
import { documentSource } from './wiring/documents.ts'
import { givenKeys } from './wiring/keys.ts'
import { openLimits } from './wiring/limiters.ts'
import { createOperations } from './wiring/operations.ts'
import { findPublicFolder, serveForDevelopers } from './wiring/pages.ts'
import { openSockets } from './wiring/subscriptions.ts'
import { alone, type ThreadShare } from './wiring/thread-share.ts'

/** A running server. Disposing it stops the server without losing a request, then closes the store. */
export interface App extends AsyncDisposable {
  readonly url: string
  /** Whether the demo data exists and its public login still works. */
  readonly demoLoginWorks: boolean
  /** Resolves when all threads know it. */
  toggleMaintenance(): Promise<void>
  /** Reads the token keys again, if they are in a file. Keys that cannot be read change nothing. */
  reloadKeys(): Promise<void>
  /** Like disposing, but refuses new requests at once, without the drain time in which clients can move away. */
  stopAtOnce(): Promise<void>
}

/** A server that may be one of several threads of a process. */
export interface ThreadApp extends App {
  setMaintenance(on: boolean): void
  metrics(): Promise<MetricsOfThread>
}

/** What the app needs from outside, in addition to its settings. */
export interface Dependencies {
  readonly logger: Logger
  readonly clock: Clock
  readonly randomness: Randomness
  readonly passwords: Passwords
  /** When a client that does not read is disconnected. */
  readonly stalledMs?: number
  /** What it shares with other threads of this process. Default: there are none. */
  readonly share?: ThreadShare
}

export { systemClock, systemRandomness } from './wiring/system.ts'

/** Creates all parts, connects them and starts the server. `wiring/` has the parts of this work that are longer. */
export async function startApp(
  config: Config,
  { logger, clock, randomness, passwords, stalledMs, share = alone(config, clock) }: Dependencies,
): Promise<ThreadApp> {
  await using parts = new AsyncDisposableStack()
  const metrics = new Metrics()
  const observer = metrics.storeObserver((message, err) => logger.warn({ err }, message))

  const timeouts = timeoutsOf(config.databaseTimeoutMs)
  const given = await givenKeys(config) // what settings name is checked before the database is opened
  const publicFolder = findPublicFolder(config)
  const schema = loadSchema()
  const documents = await documentSource(config, schema)
  const { engine, path } = parts.use(await share.open({ clock, observer, timeouts }))
  const ownKeys = `${path}-keys.json`
  const keys = given ?? (await readOrCreateKeys(ownKeys))
  await engine.ping()
  const { isFirst } = share
  const store = createStore(engine, config.eventRetentionSeconds)
  const demoLoginWorks =
    config.demoData && (share.demoLoginWorks ?? (await ensureDemoData(engine, store, passwords, randomness)))

  if (config.accessPolicy === 'open' && !config.loopback && isFirst)
    logger.warn('ACCESS_POLICY is open, and other machines can reach this service')
  const limits = await openLimits(config, { keys, share, logger, metrics }, parts)
  const signer = new JwtSigner({ keys, ttlSeconds: config.tokenTtlSeconds, clock, randomness })
  const { database } = config
  const warn = (message: string, cause?: string) => logger.warn({ cause }, message)
  let { bus } = share
  // LISTEN has no effect behind a pooler.
  if (database.kind === 'postgres' && !database.pooler) {
    const { PostgresEventBus } = await import('./events/postgres-event-bus.ts')
    bus = parts.use(new PostgresEventBus({ url: database.url, randomness, warn }))
  }
  const operations = createOperations(config, { store, bus, signer, limits, passwords, clock, randomness })
  const { posts, tokens } = operations

  const lifecycle = new Lifecycle(config, share.stoppedListening)
  const proxies = new TrustedProxies(config.trustProxy)
  const clientOf = (request: IncomingMessage) => clientKey(proxies.clientOf(request))
  const { max, windowMs, paths } = config.rateLimit
  const exempt = share.limits.limiter('exempt requests', exemptLimit.max, exemptLimit.windowMs)
  const rateLimit =
    max > 0
      ? {
          limiter: limits.limiter('requests', max, windowMs),
          exempt,
          paths,
          proxies,
          refused: share.limits.refusedClients(),
        }
      : undefined
  const executor = new Executor({ schema, documents, posts, maxComplexity: config.queryMaxComplexity })
  const unread = new Unread(mostUnread / share.threads, stalledMs)
  metrics.gauge('duet_unsent_bytes', 'Bytes that wait for clients to read them', () => unread.bytes)
  const live = { store, tokens, bus, executor, rateLimit, clientOf, unread, metrics, observer, clock, logger }
  const sockets = await openSockets(config, { ...live, signer }, parts)
  lifecycle.closeSockets = () => sockets.retire(1001, 'Going away')

  // The server is created after the parts that it uses. So it is disposed first, and can use them until then.
  const onCut = () => metrics.cutConnections.inc()
  const onRefused = () => metrics.refusedConnections.inc()
  const common = { logger, lifecycle, randomness, rateLimit, proxies, onCut, onRefused }
  const server = createServer({ ...config, ...common, unread })
  let { drainMs } = config
  parts.defer(() => shutDown(server, lifecycle, drainMs))
  serveHealth(server, store, lifecycle, config.databaseTimeoutMs)
  const metricsAccess = { token: config.metricsToken, offWithoutToken: !config.metricsOpen }
  serveMetrics(server, metrics, lifecycle, metricsAccess, share.collectMetrics)
  servePublicKeys(server, () => signer.publicKeys)
  const authenticate = authentication(server, tokens)
  serveRest({ server, authenticate, proxies }, operations, new Links(config.linkPrefix))
  const showPage = config.explorers ? showGraphiql : undefined
  serveGraphQL({ server, authenticate, executor, showPage, sockets, lifecycle })
  await serveForDevelopers(server, config, { proxies, demoLoginWorks, publicFolder })
  refuseOtherMethods(server)

  const address = { host: config.host, port: config.port, reusePort: share.threads > 1 }
  const url = await server.listen({
    ...address,
    listenTextResolver: address => `Listening at ${address}, on ${config.database.kind}`,
  })
  if (isFirst) {
    parts.use(new Janitor(() => store.purgeKeys(), observer))
    parts.use(new Janitor(() => store.events.purge(), observer))
  }
  const running = parts.move()
  const setMaintenance = (on: boolean) => {
    lifecycle.maintenance = on
    if (on) sockets.closeAll(1013, 'Service under maintenance')
  }
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= running.disposeAsync()
    return stopped
  }
  return {
    url,
    demoLoginWorks,
    async toggleMaintenance() {
      setMaintenance(!lifecycle.maintenance)
      logger.warn({ maintenance: lifecycle.maintenance }, 'Maintenance was toggled')
    },
    setMaintenance,
    metrics: () => metrics.ofThread(),
    async reloadKeys() {
      try {
        signer.use((await givenKeys(config)) ?? (await readOrCreateKeys(ownKeys)))
        sockets.revokeKeys()
        logger.info('The token keys were read again')
      } catch (err) {
        logger.error({ err }, 'The token keys could not be read again; the old ones stay in use')
      }
    },
    stopAtOnce() {
      drainMs = 0
      return stop()
    },
    [Symbol.asyncDispose]: stop,
  }
}
