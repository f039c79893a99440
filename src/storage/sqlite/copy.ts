import { DatabaseSync } from 'node:sqlite'

/** Copies a snapshot of a database to an empty file. Throws if the copy does not pass its check. */
export function copyDatabase(path: string, draft: string): void {
  using source = new DatabaseSync(path, { readOnly: true, timeout: 60_000 })
  const versionBefore = dataVersionOf(source)
  const rows = rowsOf(source)
  if (!rows.has(migrations)) throw new Error('there is no database of Duet at this path')
  source.prepare('vacuum into ?').run(draft)
  using copy = new DatabaseSync(draft)
  copy.exec('pragma user_version = 0') // without the claim number, a server notices when a copy replaces its file
  // A server that writes meanwhile may add and delete rows, but never migrations.
  const isQuiet = dataVersionOf(source) === versionBefore
  checkCopy(copy, isQuiet ? rows : new Map([...rows].filter(([table]) => table === migrations)))
}

/** Throws if the copy is damaged, or has another number of rows in one of the tables. */
export function checkCopy(copy: DatabaseSync, expected: ReadonlyMap<string, number>): void {
  const [{ integrity_check: verdict } = {}] = copy.prepare('pragma integrity_check').all()
  if (verdict !== 'ok') throw new Error(`the copy is damaged: ${verdict}`)
  const found = rowsOf(copy)
  for (const [table, count] of expected) {
    if (found.get(table) === count) continue
    throw new Error(`the copy is incomplete: ${table} has ${found.get(table) ?? 'no'} rows instead of ${count}`)
  }
}

const migrations = 'schema_migrations'

/** Changes with every commit of another connection. */
function dataVersionOf(database: DatabaseSync): unknown {
  return database.prepare('pragma data_version').get()?.data_version
}

/** The number of rows in each table. Indexes are not used: a copy has new ones, so a damaged index does no harm. */
function rowsOf(database: DatabaseSync): ReadonlyMap<string, number> {
  const tables = database.prepare("select name from sqlite_schema where type = 'table'").all()
  const count = (name: unknown) => database.prepare(`select count(*) as count from "${name}" not indexed`).get()?.count
  return new Map(tables.map(({ name }) => [String(name), Number(count(name))]))
}
