import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Config, DatabaseConfig } from './config.ts'
import type { Clock, Randomness } from './core/ports.ts'
import type { Store } from './core/store.ts'
import { serveHealth } from './server/health.ts'
import { Lifecycle } from './server/lifecycle.ts'
import { Metrics, serveMetrics } from './server/metrics.ts'
import { rememberMethods } from './server/routing.ts'
import { createServer } from './server/server.ts'
import { shutDown } from './server/shutdown.ts'
import type { Engine, EngineOptions } from './storage/engine.ts'
import { loadMigrations, type Migration } from './storage/migrate.ts'
import { migratePostgres, PostgresEngine } from './storage/postgres.ts'
import { SqliteEngine } from './storage/sqlite.ts'
import { claimSqliteFile, migrateSqlite } from './storage/sqlite-file.ts'
import { catalogue, type verbs } from './storage/verbs.ts'

/** A running Duet. Disposing it stops serving without losing a request, then closes the store. */
export interface App extends AsyncDisposable {
  readonly url: string
  toggleMaintenance(): void
}

/** What the app takes from the world beside its settings. */
export interface World {
  readonly logger: Logger
  readonly clock: Clock
  readonly randomness: Randomness
}

export const systemClock: Clock = { now: Date.now }
export const systemRandomness: Randomness = { id: randomUUID }

/** The one place where the parts meet: settings in, a listening server out. */
export async function startApp(config: Config, { logger, clock, randomness }: World): Promise<App> {
  await using parts = new AsyncDisposableStack()
  const metrics = new Metrics()
  const observer = metrics.storeObserver((message, err) => logger.warn({ err }, message))

  const engine = await openEngine(config.database, { catalogue, clock, observer }, randomness, parts)
  await engine.ping()
  const store: Store = { ping: () => engine.ping() }

  const lifecycle = new Lifecycle(config)
  const server = createServer({ ...config, logger, lifecycle, randomness })
  parts.defer(() => shutDown(server, lifecycle, config.drainMs))
  const answerOtherMethods = rememberMethods(server)
  serveHealth(server, store, lifecycle)
  serveMetrics(server, metrics, lifecycle, { token: config.metricsToken, offWithoutToken: config.production })
  answerOtherMethods()

  const url = await server.listen({
    host: config.host,
    port: config.port,
    listenTextResolver: address => `Listening at ${address}, on ${config.database.kind}`,
  })
  const running = parts.move()
  return {
    url,
    toggleMaintenance() {
      lifecycle.maintenance = !lifecycle.maintenance
      logger.warn({ maintenance: lifecycle.maintenance }, 'Maintenance was toggled')
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

/** Brings the database's schema up to date and returns what was missing. */
export async function migrateDatabase(database: DatabaseConfig): Promise<readonly Migration[]> {
  const migrations = loadMigrations(join(import.meta.dirname, '..', 'migrations', database.kind))
  return database.kind === 'sqlite'
    ? migrateSqlite(database.path, migrations)
    : migratePostgres(database.url, migrations)
}

async function openEngine(
  database: DatabaseConfig,
  options: EngineOptions<typeof verbs>,
  randomness: Randomness,
  parts: AsyncDisposableStack,
): Promise<Engine<typeof verbs>> {
  if (database.kind === 'postgres') {
    await migrateDatabase(database)
    return parts.use(new PostgresEngine({ ...options, ...database, randomness }))
  }
  const { path } = parts.use(claimSqliteFile(database.path))
  await migrateDatabase({ kind: 'sqlite', path })
  return parts.use(new SqliteEngine(path, options))
}
