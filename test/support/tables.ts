import type { Engine } from '../../src/storage/engine.ts'
import type { Verbs } from '../../src/storage/verb.ts'

/** The names of all tables that verbs write. */
export async function tablesOf<V extends Verbs>(engine: Engine<V>): Promise<readonly string[]> {
  const rows = await engine.read({ text: listing[engine.dialect.name], values: [] })
  return rows.map(([name]) => String(name)).filter(name => !ofTheEngine.includes(name))
}

/** Tables that only the engine writes. */
const ofTheEngine = ['schema_migrations', 'migration_lock', 'commit_marks']

const listing = {
  sqlite: `select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by 1`,
  postgres: 'select tablename::text from pg_tables where schemaname = current_schema order by 1',
}

/** All rows of all tables. */
export async function everything<V extends Verbs>(engine: Engine<V>): Promise<unknown> {
  const tables = await tablesOf(engine)
  const rows = tables.map(table => engine.read({ text: `select * from ${table} order by 1`, values: [] }))
  return Object.fromEntries((await Promise.all(rows)).map((found, index) => [tables[index], found]))
}
