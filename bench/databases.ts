import { join } from 'node:path'
import pg from 'pg'
import { generateKeySet } from '../src/security/keys.ts'
import { loadMigrations } from '../src/storage/migrate.ts'
import { migratePostgres } from '../src/storage/postgres.ts'
import { SqliteConnection } from '../src/storage/sqlite-connection.ts'
import { migrateSqlite } from '../src/storage/sqlite-file.ts'
import { PostgresServer } from '../test/support/postgres.ts'

export type Kind = 'sqlite' | 'postgres'

/** A database with what is planted in it, and the settings of a server that serves it. */
export async function databaseFor(
  kind: Kind,
  folder: string,
  stack: AsyncDisposableStack,
  statements: readonly string[],
): Promise<Record<string, string>> {
  const migrations = loadMigrations(join(import.meta.dirname, '..', 'migrations', kind))
  if (kind === 'sqlite') {
    const path = join(folder, 'duet.db')
    migrateSqlite(path, migrations)
    using connection = new SqliteConnection(path, 'write')
    for (const text of statements) connection.run({ text, values: [] })
    return { DATABASE_URL: `sqlite:${path}` }
  }
  const { url } = stack.use(await PostgresServer.start({ shared_buffers: '256MB' }))
  await migratePostgres(url, migrations)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  for (const statement of statements) await client.query(statement)
  await client.end()
  return { DATABASE_URL: url, TOKEN_KEYS: await generateKeySet() }
}
