import type { Config } from './config.ts'
import { Access } from './core/access.ts'
import { demoLogin } from './core/demo.ts'
import { Orders } from './core/orders/operations.ts'
import { PasswordResets } from './core/password-resets/operations.ts'
import { Payments } from './core/payments/operations.ts'
import { Posts } from './core/posts/operations.ts'
import type { Store } from './core/store.ts'
import { Tokens } from './core/tokens/operations.ts'
import { Users } from './core/users/operations.ts'
import { Executor } from './graphql/execute.ts'
import { showGraphiql } from './graphql/http/graphiql/page.ts'
import { serveGraphQL } from './graphql/http/routes.ts'
import { loadSchema } from './graphql/language/schema.ts'
import { authentication, servePublicKeys } from './http/authentication.ts'
import { TrustedProxies } from './http/client-address.ts'
import { serveHealth } from './http/health.ts'
import { Lifecycle, shutDown } from './http/lifecycle.ts'
import { Metrics, serveMetrics } from './http/metrics.ts'
import { version } from './http/pages/home.ts'
import { refuseOtherMethods } from './http/routing.ts'
import { createServer } from './http/server.ts'
import { mostUnread, Unread } from './http/unread.ts'
import { Janitor } from './lib/janitor.ts'
import { oneAtATime } from './lib/one-at-a-time.ts'
import { Links } from './rest/links.ts'
import { serveRest } from './rest/serve.ts'
import { readOrCreateKeys } from './security/keys.ts'
import { secrets } from './security/secrets.ts'
import { JwtSigner } from './security/tokens.ts'
import { backupAge } from './storage/backup.ts'
import type { OpenDatabase } from './storage/database.ts'
import { seedDemoData } from './storage/entities/demo-data.ts'
import { createStore } from './storage/store.ts'
import { timeoutsOf } from './storage/timeouts.ts'
import { alone, type Base, givenKeys, openRequestLog } from './wiring/base.ts'
import { documentSource } from './wiring/documents.ts'
import { loginLimits, openLimits, rateLimitOf } from './wiring/limiters.ts'
import { sendMails } from './wiring/mail.ts'
import { findPublicFolder, serveForDevelopers } from './wiring/pages.ts'
import { running, type ThreadApp } from './wiring/running.ts'
import { openBus, openSockets } from './wiring/subscriptions.ts'

export { systemClock, systemRandomness } from './wiring/base.ts'
export type { App, ThreadApp } from './wiring/running.ts'

/** What the app needs from outside, in addition to its settings. */
export interface Dependencies extends Pick<Base, 'logger' | 'clock' | 'randomness' | 'passwords'> {
  /** What it has in common with other threads of this process. Default: there are none. */
  readonly common?: Base['common']
  readonly stalledMs?: number
  readonly mailEveryMs?: number
}

/** Creates all parts, connects them and starts the server. `wiring/` has the parts of this work that are longer. */
export async function startApp(config: Config, { stalledMs, mailEveryMs, ...given }: Dependencies): Promise<ThreadApp> {
  await using parts = new AsyncDisposableStack()
  const { logger, clock, randomness } = given
  const metrics = new Metrics()
  const observer = metrics.storeObserver((message, err) => logger.warn({ err }, message))
  const requestLog = await openRequestLog(config, logger, parts)
  const base: Base = { common: alone(config, clock), ...given, metrics, observer, requestLog }
  const { common } = base

  // What settings name is checked before the database is opened.
  await givenKeys(config)
  const publicFolder = findPublicFolder(config)
  const schema = loadSchema()
  const documents = await documentSource(config, schema)

  const timeouts = timeoutsOf(config.databaseTimeoutMs)
  const engine = await common.open({ clock, observer, timeouts }, parts)
  const readKeys = async () => (await givenKeys(config)) ?? (await readOrCreateKeys(`${engine.path}-keys.json`))
  const keys = await readKeys()
  await engine.ping()
  addGauges(config, base, engine)
  const store = createStore(engine, config.eventRetentionSeconds)
  const demoLoginWorks = config.demoData && (common.demoLoginWorks ?? (await ensureDemoData(engine, store, base)))

  const bus = await openBus(config, base, parts)
  const limits = await openLimits(config, base, keys, parts)
  const signer = new JwtSigner({ keys, ttlSeconds: config.tokenTtlSeconds, clock, randomness })
  const access = new Access(config.accessPolicy, config.signUp)
  const core = { ...base, store, bus, access, signer, limits: loginLimits(config.loginLimitMax, limits) }
  const users = new Users(core)
  const orders = new Orders(core)
  const payments = new Payments({ ...core, keyTtlSeconds: config.idempotencyTtlSeconds })
  const posts = new Posts(core)
  const tokens = new Tokens({ ...core, sessionTtlSeconds: config.sessionTtlSeconds })
  const passwordResets = new PasswordResets({ ...core, secrets, sendsMail: config.mail !== undefined })
  const executor = new Executor({ schema, documents, posts, maxComplexity: config.queryMaxComplexity })

  const lifecycle = new Lifecycle(config, common.stoppedListening)
  const proxies = new TrustedProxies(config.trustProxy)
  const rateLimit = rateLimitOf(config, limits, common.limits, proxies)
  const unread = new Unread(mostUnread / common.threads, stalledMs)
  metrics.gauge('duet_unsent_bytes', 'Bytes that wait for clients to read them', () => unread.bytes)
  const live = { store, bus, signer, tokens, executor, rateLimit, proxies, unread }
  const sockets = await openSockets(config, base, live, parts)
  lifecycle.closeSockets = () => sockets.retire(1001, 'Going away')

  const mails = parts.use(new AsyncDisposableStack()) // go on while the server answers its last requests
  // The server is created after the parts that it uses. So it is disposed first, and can use them until then.
  const server = createServer(config, { ...base, lifecycle, proxies, rateLimit, unread })
  parts.defer(() => shutDown(server, lifecycle))
  serveHealth(server, lifecycle, metrics, store, config.databaseTimeoutMs)
  serveMetrics(server, metrics, lifecycle, config, common.collectMetrics)
  servePublicKeys(server, () => signer.publicKeys)
  const authenticate = authentication(server, tokens)
  const links = new Links(config.linkPrefix)
  await serveRest({ server, authenticate, links, users, orders, payments, tokens, passwordResets })
  const showPage = config.explorers ? showGraphiql : undefined
  serveGraphQL({ server, authenticate, executor, showPage, sockets, lifecycle })
  await serveForDevelopers(server, config, { proxies, demoLoginWorks, publicFolder })
  refuseOtherMethods(server)

  const address = { host: config.host, port: config.port, reusePort: common.threads > 1 }
  const listenTextResolver = (address: string) => `Listening at ${address}, on ${config.database.kind}`
  const url = await server.listen({ ...address, listenTextResolver, backlog })
  if (common.isFirst) {
    if (config.accessPolicy === 'open' && !config.loopback)
      logger.warn('ACCESS_POLICY is open, and other machines can reach this service')
    await sendMails(config, base, { store, secrets, ownUrl: url, everyMs: mailEveryMs }, mails)
    parts.use(new Janitor(() => store.purgeKeys(), observer))
    parts.use(new Janitor(() => store.purgeResets(), observer))
    parts.use(new Janitor(() => store.events.purge(), observer))
  }
  const all = parts.move()
  const stop = oneAtATime(() => all.disposeAsync())
  return running(base, { url, demoLoginWorks, lifecycle, sockets, signer, readKeys, stop })
}

/** Tells what runs here, how busy the connections to the database are, and how old its backup is. */
function addGauges({ database, backupDir }: Config, { metrics, clock }: Base, { poolUse }: OpenDatabase) {
  metrics.buildInfo({ version, node: process.version, engine: database.kind })
  if (backupDir !== undefined)
    metrics.gauge('duet_backup_age_seconds', 'Age of the newest backup', () => backupAge(backupDir, clock.now()), 'max')
  if (poolUse === undefined) return
  const inUse = 'Connections to PostgreSQL that are in use or being opened'
  metrics.gauge('duet_pool_connections_in_use', inUse, poolUse.inUse)
  metrics.gauge('duet_pool_waiting', 'Reads and writes that wait for a connection', poolUse.waiting)
}

/** Writes the demo data into an empty database. Returns whether its login works. */
async function ensureDemoData(engine: OpenDatabase, store: Store, { passwords, randomness }: Base) {
  await seedDemoData(engine, passwords, randomness)
  const user = await store.credentials(demoLogin.email)
  return passwords.matches(demoLogin.password, user?.passwordHash)
}

/** Connections that wait in the kernel while all clients of another instance come at once. It gives less if it allows less. */
const backlog = 8_192
