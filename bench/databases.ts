import { join } from 'node:path'
import pg from 'pg'
import { generateKeySet } from '../src/security/keys.ts'
import { loadMigrations } from '../src/storage/migrate.ts'
import { migratePostgres } from '../src/storage/postgres/migrate.ts'
import { SqliteConnection } from '../src/storage/sqlite/connection.ts'
import { migrateSqlite } from '../src/storage/sqlite/file.ts'
import { PostgresServer } from '../test/support/postgres.ts'
import { childrenOf, parentOf } from './core/processes.ts'

export type Kind = 'sqlite' | 'postgres'

/** A database with its rows. */
export interface Database {
  /** Settings of a server that serves it. */
  readonly environment: Readonly<Record<string, string>>
  /** Processes of the database's own. */
  processes(): readonly number[]
}

export async function databaseFor(
  kind: Kind,
  folder: string,
  stack: AsyncDisposableStack,
  statements: readonly string[],
): Promise<Database> {
  const migrations = loadMigrations(join(import.meta.dirname, '..', 'migrations', kind))
  if (kind === 'sqlite') {
    const path = join(folder, 'duet.db')
    migrateSqlite(path, migrations)
    using connection = new SqliteConnection(path, 'write')
    for (const text of statements) connection.run({ text, values: [] })
    return { environment: { DATABASE_URL: `sqlite:${path}` }, processes: () => [] }
  }
  const { url } = stack.use(await PostgresServer.start({ shared_buffers: '256MB' }))
  await migratePostgres(url, migrations)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  for (const statement of statements) await client.query(statement)
  const { rows } = await client.query('select pg_backend_pid() as pid')
  const postmaster = parentOf(rows[0].pid)
  await client.end()
  return {
    environment: { DATABASE_URL: url, TOKEN_KEYS: await generateKeySet() },
    processes: () => (postmaster === undefined ? [] : childrenOf(postmaster)),
  }
}
