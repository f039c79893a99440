import { createHash } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { AppError } from '../core/errors.ts'
import { migrateDatabase } from './database.ts'
import { columnOf } from './postgres/exchange.ts'
import { lockSqliteFile } from './sqlite/file.ts'

/** All tables whose rows are moved, each after those that it refers to. */
const tables =
  'counters users posts comments payments orders order_items idempotency_keys password_resets outbox'.split(' ')

/**
 * Copies all rows of a SQLite file that no server uses to an empty PostgreSQL database, in one transaction. The copy is
 * read again and compared before the commit. Ids, positions of events and what comes next in each sequence stay.
 * Returns the number of rows by table.
 */
export async function moveToPostgres(path: string, url: string): Promise<ReadonlyMap<string, number>> {
  using _lock = lockSqliteFile(path)
  using source = new DatabaseSync(path, { readOnly: true, timeout: 60_000 })
  source.exec('begin') // as of one moment
  const client = new pg.Client({ connectionString: url, types: { getTypeParser: columnOf } })
  client.on('error', () => {})
  try {
    await client.connect()
    await requireUnused(client)
    await migrateDatabase({ kind: 'postgres', url, poolMax: 1, pooler: false }, () => {})
    await client.query(`begin; set local statement_timeout = 0; set local lock_timeout = '10s';
                        set local enable_sort = off; lock table ${tables.join()}, event_head`)
    await requireSameSchema(source, client)
    await requireEmpty(client)
    await client.query('delete from counters')
    // Rows are moved as they are: a trigger would count comments that are counted already.
    const triggers = (word: string) =>
      client.query(tables.map(name => `alter table ${name} ${word} trigger user`).join(';'))
    await triggers('disable')
    const copies = []
    for (const table of tables) copies.push(await copyTable(source, client, table))
    await triggers('enable')
    for (const { compare } of copies) await compare()
    await client.query('commit')
    await client.query(`vacuum (analyze) ${tables.join()}`).catch(() => {}) // only for the speed of the first reads
    return new Map(copies.map(({ table, count }) => [table, count]))
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    if (error instanceof AppError || code === 'ERR_SQLITE_ERROR') throw error
    throw new AppError('unavailable', `--to: ${message || code}`)
  } finally {
    await client.end() // rolls back if there was no commit
  }
}

/** Before the schema is created: a database that others use must stay as it is. */
async function requireUnused(client: pg.Client): Promise<void> {
  const { rows } = await client.query(`select relname from pg_class where relkind in ('r', 'p', 'v')
                                       and relnamespace = current_schema()::regnamespace`)
  if (rows.length > 0 && rows.every(({ relname }) => relname !== 'schema_migrations')) throw notEmpty(rows[0]?.relname)
}

async function requireEmpty(client: pg.Client): Promise<void> {
  for (const table of tables.filter(table => table !== 'counters')) {
    const { rows } = await client.query(`select 1 from ${table} limit 1`)
    if (rows.length > 0) throw notEmpty(table)
  }
}

const notEmpty = (table: string) =>
  new AppError('conflict', `--to: the database is not empty, it has ${table}; nothing was changed`)

async function requireSameSchema(source: DatabaseSync, client: pg.Client): Promise<void> {
  const text = 'select max(version) as version from schema_migrations'
  if (source.prepare(text).get()?.version === (await client.query(text)).rows[0]?.version) return
  throw new AppError('conflict', 'DATABASE_URL: the database is of another version; run `duet migrate` first')
}

async function copyTable(source: DatabaseSync, client: pg.Client, table: string) {
  const key = table === 'counters' ? 'name' : 'id'
  // In SQLite the id of an event is its position.
  const all = `select *${table === 'outbox' ? ', id as position' : ''} from ${table}`
  const select = source.prepare(`${all} where ${key} > ? order by ${key} limit ${rowsTogether}`)
  const columns = Array.from(select.columns(), ({ name }) => `"${name}"`).join()
  const insert = `insert into ${table} (${columns}) overriding system value
                  select ${columns} from json_populate_recordset(null::${table}, $1)`
  const copy = `select ${columns} from ${table} where ${key} > $1 order by ${key} limit ${rowsTogether}`
  const sent = await inPortions(key, async after => {
    const rows = select.all(after)
    await client.query(insert, [JSON.stringify(rows)])
    return rows
  })
  const given = source.prepare('select seq from sqlite_sequence where name = ?').get(table)?.seq
  const last = Math.max(Number(sent.last) || 0, Number(given ?? 0))
  // Users have ids without a sequence.
  if (key === 'id' && last > 0) await client.query("select setval(pg_get_serial_sequence($1, 'id'), $2)", [table, last])
  if (table === 'outbox') await client.query('update event_head set position = $1', [last])
  const compare = async () => {
    const found = await inPortions(key, async after => (await client.query(copy, [after])).rows)
    if (found.digest !== sent.digest)
      throw new AppError('conflict', `${table}: ${found.count} rows are not the ${sent.count} sent; nothing was moved`)
  }
  return { table, count: sent.count, compare }
}

type Rows = readonly Readonly<Record<string, string | number | bigint | null | NodeJS.ArrayBufferView>>[]

/** Reads a table to its end, some rows at a time. The digest is a hash of all of them. */
async function inPortions(key: string, read: (after: string | number) => Promise<Rows>) {
  const hash = createHash('sha256')
  let last: string | number = -1 // before every id, and before every name
  for (let count = 0; ; ) {
    const rows = await read(last)
    hash.update(JSON.stringify(rows))
    count += rows.length
    last = (rows.at(-1)?.[key] as string | number | undefined) ?? last
    if (rows.length < rowsTogether) return { count, last, digest: hash.digest('hex') }
  }
}

/** Few round trips, and little memory: a text has up to 256 KiB. */
const rowsTogether = 200
