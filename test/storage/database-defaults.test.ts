import assert from 'node:assert/strict'
import { after, describe, it, test } from 'node:test'
import { sql } from '../../src/storage/sql.ts'
import { postgres } from '../support/engines.ts'
import { tokenKeys } from '../support/keys.ts'
import { runDuet } from '../support/process.ts'
import { dropPostgresDatabase, executeOn, migrationsOf } from '../support/templates.ts'
import { catalogue } from './contract-verbs.ts'
import { connectTo } from './transaction.ts'

describe('A database whose default isolation is serializable', { skip: postgres.skip }, () => {
  const parts = new AsyncDisposableStack()
  const create = async () => {
    const database = parts.use(await postgres.createEmpty())
    const name = new URL(database.location).pathname.slice(1)
    await executeOn(database.location, `alter database ${name} set default_transaction_isolation = 'serializable'`)
    return database
  }
  after(() => parts.disposeAsync())

  it('is migrated once when many instances start at the same moment', async () => {
    const empty = await create()
    const runs = await Promise.all(Array.from({ length: 8 }, () => empty.migrate()))
    assert.deepEqual(
      runs.filter(applied => applied.length > 0),
      [migrationsOf('postgres')],
    )
  })

  it('is written to at read committed, so that writers wait for each other instead of failing', async () => {
    await using engine = (await create()).open(catalogue)
    const level = sql`select current_setting('default_transaction_isolation'), current_setting('transaction_isolation')`
    assert.deepEqual(await engine.write('run', [level]), [[['serializable', 'read committed']]])
  })
})

test('a database that is not encoded in UTF8 is refused with one line that names its encoding, and stays empty', {
  skip: postgres.skip,
}, async () => {
  await using parts = new AsyncDisposableStack()
  const { location } = parts.use(await postgres.createEmpty())
  const url = `${location}_ascii`
  const name = new URL(url).pathname.slice(1)
  await executeOn(
    location,
    `create database ${name} encoding 'SQL_ASCII' template template0 lc_collate 'C' lc_ctype 'C'`,
  )
  parts.defer(() => dropPostgresDatabase(url))
  const env = { DATABASE_URL: url, TOKEN_KEYS: tokenKeys }
  const stderr = 'duet: DATABASE_URL: The database has the encoding SQL_ASCII. Create one with the encoding UTF8.\n'
  assert.deepEqual(await runDuet(['serve'], { env }), { code: 1, stdout: '', stderr })
  await using client = await connectTo(url)
  assert.equal((await client.query("select from pg_tables where schemaname = 'public'")).rowCount, 0)
})
