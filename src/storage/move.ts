import { createHash } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { AppError } from '../core/errors.ts'
import { migrateDatabase, migrationsFor } from './database.ts'
import { columnOf } from './postgres/exchange.ts'
import { lockSqliteFile } from './sqlite/file.ts'

/** All tables whose rows are moved, each after those that it refers to. */
const tables = 'counters users posts comments payments orders order_items idempotency_keys outbox'.split(' ')

export interface MovedTable {
  readonly table: string
  readonly rows: number
}

/** A SQLite file that no server uses, as of one moment. Until it is disposed, none can start. */
export function openSource(path: string): Disposable & { readonly database: DatabaseSync } {
  using parts = new DisposableStack()
  parts.use(lockSqliteFile(path))
  const database = parts.use(new DatabaseSync(path, { readOnly: true, timeout: 60_000 }))
  database.exec('begin')
  requireCurrent(database)
  const all = parts.move()
  return { database, [Symbol.dispose]: () => all.dispose() }
}

/**
 * Copies all rows to an empty PostgreSQL database, in one transaction. The copy is read again and compared before the
 * commit. Ids, positions of events and what comes next in each sequence stay.
 */
export async function moveToPostgres(source: DatabaseSync, url: string): Promise<readonly MovedTable[]> {
  const client = new pg.Client({ connectionString: url, types: { getTypeParser: columnOf } })
  client.on('error', () => {})
  try {
    await client.connect()
    await requireUnused(client)
    await migrateDatabase({ kind: 'postgres', url, poolMax: 1, pooler: false }, () => {})
    await client.query(`begin; set local statement_timeout = 0; set local lock_timeout = '10s';
                        set local enable_sort = off; lock table ${tables.join()}, event_head`)
    await requireEmpty(client)
    await client.query('delete from counters')
    // Rows are moved as they are: a trigger would count comments that are counted already.
    const triggers = (word: string) =>
      client.query(tables.map(name => `alter table ${name} ${word} trigger user`).join(';'))
    await triggers('disable')
    const copies: Copy[] = []
    for (const table of tables) copies.push(await copyTable(source, client, table))
    await triggers('enable')
    for (const copy of copies) await compare(client, copy)
    await client.query('commit')
    await client.query(`vacuum (analyze) ${tables.join()}`).catch(() => {}) // only for the speed of the first reads
    return copies
  } finally {
    await client.end() // rolls back if there was no commit
  }
}

function requireCurrent(source: DatabaseSync): void {
  const { last } = source.prepare('select max(version) as last from schema_migrations').get() ?? {}
  if (last === migrationsFor('sqlite').length) return
  throw new AppError('conflict', 'DATABASE_URL: the database is of another version; run `duet migrate` first')
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

interface Copy extends MovedTable {
  readonly columns: string
  readonly digest: string
}

async function copyTable(source: DatabaseSync, client: pg.Client, table: string): Promise<Copy> {
  // In SQLite the id of an event is its position.
  const select = source.prepare(`select *${table === 'outbox' ? ', id as position' : ''} from ${table} order by 1`)
  const columns = Array.from(select.columns(), ({ name }) => `"${name}"`).join()
  const insert = `insert into ${table} (${columns}) overriding system value
                  select ${columns} from json_populate_recordset(null::${table}, $1)`
  const hash = createHash('sha256')
  let rows = 0
  let last = 0
  let batch: string[] = []
  let length = 0
  const send = async () => {
    if (batch.length > 0) await client.query(insert, [`[${batch.join()}]`])
    batch = []
    length = 0
  }
  for (const row of select.iterate()) {
    const text = JSON.stringify(row)
    hash.update(text)
    rows++
    last = Number(row.id)
    length += text.length
    if (batch.push(text) === rowsTogether || length > charactersTogether) await send()
  }
  await send()
  const given = source.prepare('select seq from sqlite_sequence where name = ?').get(table)?.seq
  last = Math.max(last || 0, Number(given ?? 0))
  // Users have ids without a sequence, and counters have none.
  if (table !== 'counters' && last > 0)
    await client.query("select setval(pg_get_serial_sequence($1, 'id'), $2)", [table, last])
  if (table === 'outbox') await client.query('update event_head set position = $1', [last])
  return { table, rows, columns, digest: hash.digest('hex') }
}

async function compare(client: pg.Client, { table, rows, columns, digest }: Copy): Promise<void> {
  const hash = createHash('sha256')
  let count = 0
  await client.query(`declare copied no scroll cursor for select ${columns} from ${table} order by 1`)
  for (;;) {
    const portion = (await client.query(`fetch ${rowsFetched} from copied`)).rows
    if (portion.length === 0) break
    for (const row of portion) hash.update(JSON.stringify(row))
    count += portion.length
  }
  await client.query('close copied')
  if (count === rows && hash.digest('hex') === digest) return
  throw new AppError('conflict', `${table}: ${count} rows arrived, not the ${rows} that were sent; nothing was moved`)
}

/** Large enough for few round trips, and small enough for the memory: a text has up to 256 KiB. */
const rowsTogether = 1_000
const charactersTogether = 1024 * 1024
const rowsFetched = 200
