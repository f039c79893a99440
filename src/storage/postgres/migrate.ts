import pg from 'pg'
import { type Migration, MigrationRefusal, migrate } from '../migrate.ts'
import { isAlreadyThere } from './errors.ts'
import { columnOf } from './exchange.ts'
import { begin, drive } from './transact.ts'

/** Applies the missing migrations. Instances that start at the same time wait for their turn. */
export async function migratePostgres(url: string, migrations: readonly Migration[]): Promise<readonly Migration[]> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 10_000,
    types: { getTypeParser: columnOf },
  })
  client.on('error', () => {})
  await client.connect()
  try {
    await requireUtf8(client)
    await createLock(client)
    await client.query(`${begin.text}; set local lock_timeout = '60s'`)
    await client.query('select id from migration_lock for update')
    const applied = await drive(migrate(migrations), async step => {
      if ('script' in step) await client.query(step.script)
      else return (await client.query({ text: step.text, values: [...step.values], rowMode: 'array' })).rows
      return []
    })
    await client.query('commit')
    return applied
  } finally {
    await client.end() // rolls back if there was no commit
  }
}

/** Other encodings lack characters that users send, or, like SQL_ASCII, count bytes instead of characters. */
async function requireUtf8(client: pg.Client): Promise<void> {
  const { rows } = await client.query({ text: 'show server_encoding', rowMode: 'array' })
  const encoding = rows[0]?.[0]
  if (encoding !== 'UTF8')
    throw new MigrationRefusal(`The database has the encoding ${encoding}. Create one with the encoding UTF8.`)
}

/**
 * Creates the row that migrations lock. If several instances create the table at the same moment, PostgreSQL refuses
 * all but one, although the statement says `if not exists`. The next try then finds the table.
 */
async function createLock(client: pg.Client): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await client.query(`${begin.text}; create table if not exists migration_lock (id integer primary key check (id = 1));
                          insert into migration_lock (id) values (1) on conflict do nothing; commit`)
      return
    } catch (error) {
      if (tries === 10 || !isAlreadyThere(error)) throw error
      await client.query('rollback')
    }
  }
}
