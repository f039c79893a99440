import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { type App, type Dependencies, startApp, systemClock, systemRandomness } from '../../src/app.ts'
import { type Environment, readConfig } from '../../src/config.ts'
import { TrustedProxies } from '../../src/http/client-address.ts'
import { Lifecycle, shutDown } from '../../src/http/lifecycle.ts'
import { Metrics } from '../../src/http/metrics.ts'
import { RequestLog } from '../../src/http/request-log.ts'
import { refuseOtherMethods } from '../../src/http/routing.ts'
import { createServer, type ServerParts, type ServerSettings } from '../../src/http/server.ts'
import { Unread } from '../../src/http/unread.ts'
import type { Engine } from '../../src/storage/engine.ts'
import { catalogue, type verbs } from '../../src/storage/verbs.ts'
import { startThreads } from '../../src/threads/supervisor.ts'
import { type EngineKind, sqlite, type TestDatabase } from './engines.ts'
import { testThreads } from './form.ts'
import { tokenKeys } from './keys.ts'
import { collectLogs, type LogLine } from './logs.ts'
import { cheapPasswords } from './passwords.ts'
import { newRedisDatabase, redisMissing } from './redis.ts'
import { generous, testTimeoutMs } from './wait.ts'

interface Running extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly logs: LogLine[]
}

/**
 * The whole app, as `duet serve` starts it, on a free port and a temporary database. Dependencies other than passwords
 * cannot be passed to other threads, so an app with such dependencies has one thread.
 */
export async function startTestApp(
  env: Environment = {},
  dependencies: Partial<Dependencies> = {},
): Promise<Running & { readonly app: App }> {
  await using parts = new AsyncDisposableStack()
  // To copy a file with the schema takes less time than to create one.
  const database = env.DATABASE_URL === undefined ? parts.use(await sqlite.create()) : undefined
  const config = readConfig({
    ...generous,
    PORT: '0',
    DATABASE_URL: database?.url,
    LOG_LEVEL: 'info',
    DRAIN_MS: '0',
    DEMO_DATA: 'false',
    THREADS: testThreads,
    ...env,
  })
  const { logger, logs } = collectLogs(config.logLevel)
  const write = (lines: string) => {
    for (const line of lines.trimEnd().split('\n')) logs.push(JSON.parse(line))
  }
  const onGiveUp = (error: Error) => {
    throw error
  }
  // On a busy machine, a client may read nothing for longer than the usual limit.
  const usual = { clock: systemClock, randomness: systemRandomness, stalledMs: 10 * testTimeoutMs }
  const { passwords = cheapPasswords(), ...others } = dependencies
  const app = parts.use(
    config.threads > 1 && Object.keys(others).length === 0
      ? await startThreads(config, { logger, passwords, write, onGiveUp })
      : await startApp(config, { logger, ...usual, ...dependencies, passwords }),
  )
  const all = parts.move()
  return {
    app,
    url: app.url,
    port: Number(new URL(app.url).port),
    logs,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  }
}

export interface TestApp extends Running {
  readonly app: App
  readonly database: TestDatabase
  /** The test's own connection to the database. */
  readonly engine: Engine<typeof verbs>
}

/** The whole app on a new database of the given kind, which the test can also open directly. On PostgreSQL it uses Redis. */
export async function startTestAppOn(
  kind: EngineKind,
  env: Environment = {},
  dependencies: Partial<Dependencies> = {},
): Promise<TestApp> {
  await using parts = new AsyncDisposableStack()
  const database = parts.use(await kind.create())
  const redis = kind.kind === 'postgres' && redisMissing() === undefined ? await newRedisDatabase() : undefined
  const own = { DATABASE_URL: database.url, REDIS_URL: redis, TOKEN_KEYS: tokenKeys }
  const running = parts.use(await startTestApp({ ...own, ...env }, dependencies))
  const all = parts.move()
  let engine: TestApp['engine'] | undefined
  return {
    ...running,
    database,
    get engine() {
      engine ??= all.use(database.open(catalogue))
      return engine
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  }
}

/** The routes of the app, such as `GET /users/:id`, without those that answer 405, and HEAD, which every GET has. */
export async function registeredRoutes(): Promise<ReadonlySet<string>> {
  const routes = new Set<string>()
  const watch = (message: unknown) => {
    const { fastify } = message as { fastify: FastifyInstance }
    fastify.addHook('onRoute', ({ method, url, config }) => {
      if (config?.allow !== undefined) return
      for (const each of [method].flat()) if (each !== 'HEAD') routes.add(`${each} ${url}`)
    })
  }
  subscribe('fastify.initialization', watch)
  try {
    await using _app = await startTestApp({ THREADS: '1' })
  } finally {
    unsubscribe('fastify.initialization', watch)
  }
  return routes
}

type TestServer = Running & { readonly server: FastifyInstance; readonly lifecycle: Lifecycle }

/** The app's HTTP server with routes that only a test needs. */
export async function startTestServer(
  register: (server: FastifyInstance, lifecycle: Lifecycle) => void,
  options: Partial<ServerSettings & ServerParts> = {},
): Promise<TestServer> {
  const { logger, logs } = collectLogs()
  const lifecycle = new Lifecycle({ maintenance: false, drainMs: 0 })
  const settings = { ...readConfig({ ACCESS_POLICY: 'enforced', CONNECTIONS_PER_CLIENT: '0' }), ...options }
  const server = createServer(settings, {
    logger,
    requestLog: new RequestLog(logger),
    lifecycle,
    randomness: systemRandomness,
    rateLimit: undefined,
    proxies: new TrustedProxies([]),
    unread: new Unread(),
    metrics: new Metrics(),
    ...options,
  })
  register(server, lifecycle)
  refuseOtherMethods(server)
  const url = await server.listen({ host: '127.0.0.1', port: 0 })
  const { port } = server.server.address() as AddressInfo
  const stop = () => {
    lifecycle.drainMs = 0
    return shutDown(server, lifecycle)
  }
  return { server, lifecycle, url, port, logs, [Symbol.asyncDispose]: stop }
}
