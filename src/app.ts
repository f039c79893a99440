import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { GraphQLSchema } from 'graphql'
import type { Logger } from 'pino'
import { MemoryEventBus } from './cluster/event-bus.ts'
import { PostgresEventBus } from './cluster/postgres-event-bus.ts'
import { MemoryRateLimiter } from './cluster/rate-limiter.ts'
import { type Config, ConfigError, type DatabaseConfig } from './config.ts'
import { Access } from './core/access.ts'
import { demoLogin } from './core/demo.ts'
import type { EventBus } from './core/events.ts'
import { type Deliver, Feed } from './core/feed.ts'
import { Janitor } from './core/janitor.ts'
import { Orders } from './core/orders/operations.ts'
import { Payments } from './core/payments/operations.ts'
import type { Clock, Passwords, Randomness, RateLimiter } from './core/ports.ts'
import { Posts } from './core/posts/operations.ts'
import type { Store } from './core/store.ts'
import { type LoginLimits, Tokens } from './core/tokens/operations.ts'
import { Users } from './core/users/operations.ts'
import { Executor } from './graphql/execute.ts'
import { serveGraphiqlAssets, showGraphiql } from './graphql/http/graphiql/page.ts'
import { serveGraphQL } from './graphql/http/routes.ts'
import { Documents } from './graphql/language/documents.ts'
import { loadSchema } from './graphql/language/schema.ts'
import { AutomaticDocuments } from './graphql/persisted/automatic.ts'
import { ManifestError, readManifest } from './graphql/persisted/manifest.ts'
import type { DocumentSource } from './graphql/persisted/source.ts'
import { TrustedDocuments } from './graphql/persisted/trusted.ts'
import { Sockets } from './graphql/socket/sockets.ts'
import { FanOut } from './graphql/subscriptions/fan-out.ts'
import { Links } from './rest/links.ts'
import { serveOrders } from './rest/orders.ts'
import { servePayments } from './rest/payments.ts'
import { prefixes } from './rest/routes.ts'
import { restComponents } from './rest/schemas.ts'
import { serveTokens } from './rest/tokens.ts'
import { serveUsers } from './rest/users.ts'
import { KeyError, readKeys, readOrCreateKeys, secretOf, type TokenKeys } from './security/keys.ts'
import { Argon2Passwords } from './security/passwords.ts'
import { JwtSigner } from './security/tokens.ts'
import { authentication, bearerOf } from './server/authentication.ts'
import { clientKey, TrustedProxies } from './server/client-address.ts'
import { allowedOrigins } from './server/cors.ts'
import { serveDocs } from './server/docs.ts'
import { reportFailure } from './server/errors.ts'
import { serveHealth } from './server/health.ts'
import { servePublicKeys } from './server/keys.ts'
import { Lifecycle } from './server/lifecycle.ts'
import { Metrics, serveMetrics } from './server/metrics.ts'
import { collectOperations, serveDocument } from './server/openapi.ts'
import { operationLimit } from './server/rate-limit.ts'
import { rememberMethods } from './server/routing.ts'
import { createServer, type ServerOptions } from './server/server.ts'
import { serviceOperations } from './server/service-operations.ts'
import { shutDown } from './server/shutdown.ts'
import { unreadBounds } from './server/unread.ts'
import { Unsent } from './server/unsent.ts'
import { type OpenDatabase, openDatabase } from './storage/database.ts'
import { seedDemoData } from './storage/entities/demo-data.ts'
import { createStore } from './storage/store.ts'
import { timeoutsOf } from './storage/timeouts.ts'

/** A running server. Disposing it stops the server without losing a request, then closes the store. */
export interface App extends AsyncDisposable {
  readonly url: string
  /** Whether the demo data exists and its public login still works. */
  readonly demoLoginWorks: boolean
  toggleMaintenance(): void
  /** Reads the token keys again, if they are in a file. Keys that cannot be read change nothing. */
  reloadKeys(): Promise<void>
  /** Like disposing, but refuses new requests at once, without the drain time in which clients can move away. */
  stopAtOnce(): Promise<void>
}

/** What the app needs from outside, in addition to its settings. */
export interface Dependencies {
  readonly logger: Logger
  readonly clock: Clock
  readonly randomness: Randomness
  /** Default: Argon2id. */
  readonly passwords?: Passwords
  /** When a client that does not read is disconnected. Default: the usual limits. */
  readonly unread?: ServerOptions['unread']
}

export const systemClock: Clock = { now: Date.now }
export const systemRandomness: Randomness = { id: randomUUID }

/** Creates all parts, connects them and starts the server. This is the only place that knows all of them. */
export async function startApp(
  config: Config,
  { logger, clock, randomness, passwords = new Argon2Passwords(), unread }: Dependencies,
): Promise<App> {
  await using parts = new AsyncDisposableStack()
  const metrics = new Metrics()
  const observer = metrics.storeObserver((message, err) => logger.warn({ err }, message))

  const timeouts = timeoutsOf(config.databaseTimeoutMs)
  const given = await givenKeys(config) // keys and documents are checked before the database is opened
  const schema = loadSchema()
  const documents = await documentSource(config, schema)
  const { engine, path } = parts.use(await openDatabase(config.database, { clock, observer, timeouts, randomness }))
  const ownKeys = `${path}-keys.json`
  const keys = given ?? (await readOrCreateKeys(ownKeys))
  await engine.ping()
  const store = createStore(engine, timeouts.operation)
  const demoLoginWorks = config.demoData && (await ensureDemoData(engine, store, passwords, randomness))

  const access = new Access(config.accessPolicy)
  if (config.accessPolicy === 'open' && !config.loopback)
    logger.warn('ACCESS_POLICY is open, and other machines can reach this service')
  const limiter = await limiters(config, { keys, clock, logger, metrics }, parts)
  const signer = new JwtSigner({ keys, ttlSeconds: config.tokenTtlSeconds, clock, randomness })
  const { database } = config
  const warn = (message: string, cause?: string) => logger.warn({ cause }, message)
  const bus: EventBus =
    database.kind === 'postgres' && !database.pooler // LISTEN has no effect behind a pooler
      ? parts.use(new PostgresEventBus({ url: database.url, randomness, warn }))
      : new MemoryEventBus()
  const users = new Users({ store: store.users, access, passwords, randomness, bus })
  const orders = new Orders({ store: store.orders, access })
  const payments = new Payments({ store: store.payments, access, keyTtlSeconds: config.idempotencyTtlSeconds })
  const posts = new Posts({ store: store.posts, access, bus })
  const tokens = new Tokens({
    store: store.users,
    passwords,
    signer,
    limits: loginLimits(config.loginLimitMax, limiter),
  })

  const lifecycle = new Lifecycle(config)
  const proxies = new TrustedProxies(config.trustProxy)
  const clientOf = (request: IncomingMessage) => clientKey(proxies.clientOf(request))
  const { max, windowMs, paths } = config.rateLimit
  const rateLimit = max > 0 ? { limiter: limiter('requests', max, windowMs), paths, proxies } : undefined
  const executor = new Executor({ schema, documents, posts, maxComplexity: config.queryMaxComplexity })
  const fanOut = new FanOut({
    store: store.posts,
    log: store.events,
    observer: metrics.sockets,
    now: () => clock.now(),
    groups: config.subscriptionGroups,
    groupsPerClient: config.subscriptionGroupsPerClient,
    readsAtOnce: eventReadsAtOnce(config.database),
    readMs: config.databaseTimeoutMs,
    report: error => reportFailure(error, logger),
  })
  const unsent = new Unsent(unreadBounds)
  const sockets = parts.use(
    new Sockets({
      executor,
      fanOut,
      clock,
      initTimeoutMs: config.socketInitTimeoutMs,
      authenticate: async authorization => tokens.authenticate(bearerOf(authorization)),
      isStillValid: user => tokens.isStillValid(user),
      takeFor: operationLimit(rateLimit),
      clientOf,
      socketsPerClient: config.socketsPerClient,
      messagesPerSecond: config.socketMessagesPerSecond,
      isAllowedOrigin: allowedOrigins(config.corsOrigins),
      unsent,
      observer: metrics.sockets,
      report: error => reportFailure(error, logger),
    }),
  )
  lifecycle.closeSockets = () => sockets.retire(1001, 'Going away')
  metrics.gauge('duet_unsent_bytes', 'Bytes that wait for clients to read them', () => unsent.bytes)
  metrics.gauge('duet_sockets', 'Open WebSockets', () => sockets.size)
  metrics.gauge('duet_subscriptions', 'Subscriptions', () => fanOut.subscriptions)
  metrics.gauge(
    'duet_subscription_groups',
    'Groups of subscriptions with the same topic and selection',
    () => fanOut.groups,
  )
  const feed = parts.use(await Feed.start({ log: store.events, bus, observer }, deliverTo(fanOut, sockets)))
  metrics.gauge('duet_events_undelivered_age_seconds', 'Age of the oldest event that is not delivered yet, or 0', () =>
    feed.undeliveredSince === undefined ? 0 : Math.max(0, clock.now() - feed.undeliveredSince) / 1000,
  )

  // The server is created after the parts that it uses. So it is disposed first, and can use them until then.
  const onCut = () => metrics.cutConnections.inc()
  const onRefused = () => metrics.refusedConnections.inc()
  const common = { logger, lifecycle, randomness, rateLimit, proxies, onCut, onRefused }
  const server = createServer({ ...config, ...common, unread: { ...unread, unsent } })
  let { drainMs } = config
  parts.defer(() => shutDown(server, lifecycle, drainMs))
  const answerOtherMethods = rememberMethods(server)
  const openApiDocument = collectOperations(server, serviceOperations)
  serveHealth(server, store, lifecycle, config.databaseTimeoutMs)
  serveMetrics(server, metrics, lifecycle, { token: config.metricsToken, offWithoutToken: !config.metricsOpen })
  servePublicKeys(server, () => signer.publicKeys)
  const authenticate = authentication(server, tokens)
  const links = new Links(config.linkPrefix)
  for (const prefix of prefixes) {
    const rest = { server, authenticate, prefix, proxies }
    serveUsers(rest, users, links)
    serveOrders(rest, { orders, payments }, links)
    servePayments(rest, payments, links)
    serveTokens(rest, tokens)
  }
  const showPage = config.explorers ? showGraphiql : undefined
  serveGraphQL({ server, authenticate, executor, clientOf, showPage, sockets, lifecycle })
  serveDocument(server, openApiDocument(restComponents))
  if (config.explorers) {
    serveDocs(server)
    serveGraphiqlAssets(server)
  }
  answerOtherMethods()

  const url = await server.listen({
    host: config.host,
    port: config.port,
    listenTextResolver: address => `Listening at ${address}, on ${config.database.kind}`,
  })
  parts.use(new Janitor(() => store.payments.purgeKeys(), observer))
  parts.use(new Janitor(() => store.events.purge(), observer))
  const running = parts.move()
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= running.disposeAsync()
    return stopped
  }
  return {
    url,
    demoLoginWorks,
    toggleMaintenance() {
      lifecycle.maintenance = !lifecycle.maintenance
      if (lifecycle.maintenance) sockets.closeAll(1013, 'Service under maintenance')
      logger.warn({ maintenance: lifecycle.maintenance }, 'Maintenance was toggled')
    },
    async reloadKeys() {
      try {
        signer.use((await givenKeys(config)) ?? (await readOrCreateKeys(ownKeys)))
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

/** Reads the keys that `TOKEN_KEYS` contains or names. */
async function givenKeys({ tokenKeys, database }: Config): Promise<TokenKeys | undefined> {
  if (tokenKeys === undefined) {
    if (database.kind === 'sqlite') return undefined
    throw new ConfigError('TOKEN_KEYS: is needed with PostgreSQL; "npm run -s duet -- keys generate" prints a set')
  }
  try {
    return await readKeys(tokenKeys)
  } catch (error) {
    throw error instanceof KeyError ? new ConfigError(`TOKEN_KEYS: ${error.message}`) : error
  }
}

/** Any document, or only those of the manifest that `TRUSTED_DOCUMENTS` names. */
async function documentSource(config: Config, schema: GraphQLSchema): Promise<DocumentSource> {
  const { queryMaxDepth, queryMaxComplexity, introspection, production, trustedDocuments } = config
  // Suggestions would tell the schema, too.
  const suggestions = introspection && !production
  const documents = new Documents({ schema, maxDepth: queryMaxDepth, suggestions, introspection })
  if (trustedDocuments === undefined) return new AutomaticDocuments(documents)
  try {
    return new TrustedDocuments(documents, await readManifest(trustedDocuments), queryMaxComplexity)
  } catch (error) {
    throw error instanceof ManifestError ? new ConfigError(`TRUSTED_DOCUMENTS: ${error.message}`) : error
  }
}

/** Writes the demo data into an empty database. Returns whether its login works. */
async function ensureDemoData(
  engine: OpenDatabase['engine'],
  store: Store,
  passwords: Passwords,
  randomness: Randomness,
): Promise<boolean> {
  await seedDemoData(engine, passwords, randomness)
  const user = await store.users.credentials(demoLogin.email)
  return passwords.matches(demoLogin.password, user?.passwordHash)
}

type CreateLimiter = (name: string, limit: number, windowMs: number) => RateLimiter

/** Limiters that count in Redis if there is one, else in the memory of this process. */
async function limiters(
  { redis: address, redisTimeoutMs: timeoutMs, database }: Config,
  { keys, clock, logger, metrics }: { keys: TokenKeys; clock: Clock; logger: Logger; metrics: Metrics },
  parts: AsyncDisposableStack,
): Promise<CreateLimiter> {
  if (address === undefined) {
    if (database.kind === 'postgres') logger.warn('Without REDIS_URL each instance has its own rate and login limits')
    return (_name, limit, windowMs) => new MemoryRateLimiter(limit, windowMs, clock)
  }
  const onChange = (up: boolean, reason?: string) => {
    if (up) logger.info('Redis is back: instances share their limits again')
    else logger.warn({ reason }, 'Redis is away: until it is back, each instance has its own limits')
  }
  const secret = await secretOf(keys, 'keys of limits in Redis')
  // Not loaded without need: the driver takes almost a tenth of a second of CPU.
  const { RedisLimits } = await import('./cluster/redis-limits.ts')
  const limits = parts.use(await RedisLimits.open(address, { timeoutMs, onChange, secret, clock }))
  metrics.gauge('duet_redis_up', 'Whether limits are shared through Redis now', () => Number(limits.up))
  return (name, limit, windowMs) => limits.limiter(name, limit, windowMs)
}

/** Per minute: `max` failed logins per client and e-mail, and ten times as many attempts per client. 0: no limit. */
function loginLimits(max: number, limiter: CreateLimiter): LoginLimits {
  const limit = (name: string, attempts: number) => limiter(name, attempts || Number.POSITIVE_INFINITY, 60_000)
  return { perEmail: limit('failed logins', max), perClient: limit('logins', max * 10) }
}

/**
 * How many reads of events run at once. In PostgreSQL, each takes a connection, so only some of them are used. SQLite
 * reads on this thread, so this is how many run before other work gets its turn.
 */
function eventReadsAtOnce(database: DatabaseConfig): number {
  return database.kind === 'sqlite' ? 16 : Math.max(1, Math.min(4, database.poolMax >> 1))
}

/** Delivers events to the subscribers, and closes the sockets whose tokens were revoked. */
function deliverTo(fanOut: FanOut, sockets: Sockets): Deliver {
  return async function* (events) {
    for await (const event of fanOut.deliver(events)) {
      if (event.kind === 'user-revoked') await sockets.revoke(event.userId)
      yield event
    }
  }
}
