import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import { sql } from '../../src/storage/sql.ts'
import { execute } from '../faults/execute.ts'
import { startTestAppOn } from '../support/app.ts'
import { postgres, type TestDatabase } from '../support/engines.ts'
import { ask } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { runDuet } from '../support/process.ts'
import { send, somebody } from '../support/rest.ts'
import { dropPostgresDatabase, migrationsOf } from '../support/templates.ts'
import { waitUntil } from '../support/wait.ts'
import { catalogue } from './contract-verbs.ts'
import { connectTo } from './transaction.ts'

const { skip } = postgres
const nameIn = ({ location }: Pick<TestDatabase, 'location'>) => new URL(location).pathname.slice(1)

describe('A database whose default isolation is serializable', { skip }, () => {
  const create = async () => {
    const database = await postgres.createEmpty()
    await execute(database, `alter database ${nameIn(database)} set default_transaction_isolation = 'serializable'`)
    return database
  }

  it('is migrated once when many instances start at the same moment', async () => {
    await using empty = await create()
    const runs = await Promise.all(Array.from({ length: 8 }, () => empty.migrate()))
    assert.deepEqual(
      runs.filter(applied => applied.length > 0),
      [migrationsOf('postgres')],
    )
  })

  it('is written to at read committed, so that writers wait for each other instead of failing', async () => {
    await using database = await create()
    await using engine = database.open(catalogue)
    const level = sql`select current_setting('default_transaction_isolation'), current_setting('transaction_isolation')`
    assert.deepEqual(await engine.write('run', [level]), [[['serializable', 'read committed']]])
  })
})

test('a database that is not encoded in UTF8 is refused with one line that names its encoding, and stays empty', {
  skip,
}, async () => {
  await using database = await postgres.createEmpty()
  const url = `${database.location}_ascii`
  const name = `${nameIn(database)}_ascii`
  await execute(database, `create database ${name} encoding 'SQL_ASCII' template template0 lc_collate 'C' lc_ctype 'C'`)
  await using parts = new AsyncDisposableStack()
  parts.defer(() => dropPostgresDatabase(url))
  const env = { DATABASE_URL: url, TOKEN_KEYS: tokenKeys }
  const stderr = 'duet: DATABASE_URL: The database has the encoding SQL_ASCII. Create one with the encoding UTF8.\n'
  assert.deepEqual(await runDuet(['serve'], { env }), { code: 1, stdout: '', stderr })
  await using client = await connectTo(url)
  assert.equal((await client.query("select from pg_tables where schemaname = 'public'")).rowCount, 0)
})

test('a service on PostgreSQL is not ready while reads work but writes do not, and is ready again when writes work', {
  skip,
}, async () => {
  await using app = await startTestAppOn(postgres, {})
  await using admin = await connectTo(app.database.location)
  const name = nameIn(app.database)
  const setReadOnly = async (value: 'on' | 'off') => {
    await admin.query(`alter database ${name} set default_transaction_read_only = ${value}`)
    await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity
                       where datname = current_database() and application_name = 'duet'`)
  }
  const isReady = async () => (await ask(`${app.url}/health/ready`)).status
  await setReadOnly('on')
  await waitUntil(async () => (await isReady()) === 503)
  assert.equal((await ask(`${app.url}/users`)).status, 200)
  assert.equal((await send(app, 'POST /users', somebody())).status, 503)
  await setReadOnly('off')
  await waitUntil(async () => (await isReady()) === 200)
})
