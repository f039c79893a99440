import pg from 'pg'
import { type Migration, migrate } from '../migrate.ts'
import { isAlreadyThere } from './errors.ts'
import { columnOf } from './exchange.ts'
import { drive } from './transact.ts'

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
    await createLock(client)
    await client.query("begin; set local lock_timeout = '60s'")
    await client.query('select id from migration_lock for update')
    const applied = await drive(migrate(migrations), async step => {
      if ('script' in step) await client.query(step.script)
      else return (await client.query({ text: step.text, values: [...step.values], rowMode: 'array' })).rows
      return []
    })
    await client.query("delete from commit_marks where marked_at < now() - interval '1 day'")
    await client.query('commit')
    return applied
  } finally {
    await client.end() // rolls back if there was no commit
  }
}

/**
 * Creates the row that migrations lock. If several instances create the table at the same moment, PostgreSQL refuses
 * all but one, although the statement says `if not exists`. The next try then finds the table.
 */
async function createLock(client: pg.Client): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await client.query('create table if not exists migration_lock (id integer primary key check (id = 1))')
      await client.query('insert into migration_lock (id) values (1) on conflict do nothing')
      return
    } catch (error) {
      if (tries === 10 || !isAlreadyThere(error)) throw error
    }
  }
}
