import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import pg from 'pg'
import { sql } from '../../src/storage/sql.ts'
import { postgres } from '../support/engines.ts'
import { inForm, onlyInFull } from '../support/form.ts'
import { tokenKeys } from '../support/keys.ts'
import { runDuet } from '../support/process.ts'
import { dropPostgresDatabase, migrationsOf } from '../support/templates.ts'
import { catalogue } from './contract-verbs.ts'

for (const isolation of inForm(['serializable'], ['serializable', 'repeatable read'])) {
  describe(`A database whose default isolation is ${isolation}`, { skip: postgres.skip }, () => {
    const parts = new AsyncDisposableStack()
    const create = async () => {
      const database = parts.use(await postgres.createEmpty())
      const name = new URL(database.location).pathname.slice(1)
      await execute(database.location, `alter database ${name} set default_transaction_isolation = '${isolation}'`)
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
      assert.deepEqual(await engine.write('run', [level]), [[[isolation, 'read committed']]])
    })
  })
}

describe('A database that is not encoded in UTF8', { skip: postgres.skip }, () => {
  for (const [encoding, command, skip] of [
    ['LATIN1', 'migrate', onlyInFull],
    ['SQL_ASCII', 'serve', false],
  ] as const) {
    it(`is refused by ${command} with one line that names ${encoding}, and stays empty`, { skip }, async () => {
      await using parts = new AsyncDisposableStack()
      const { location } = parts.use(await postgres.createEmpty())
      const url = `${location}_${encoding.toLowerCase()}`
      const name = new URL(url).pathname.slice(1)
      await execute(
        location,
        `create database ${name} encoding '${encoding}' template template0 lc_collate 'C' lc_ctype 'C'`,
      )
      parts.defer(() => dropPostgresDatabase(url))
      const env = { DATABASE_URL: url, TOKEN_KEYS: tokenKeys }
      const stderr = `duet: DATABASE_URL: The database has the encoding ${encoding}. Create one with the encoding UTF8.\n`
      assert.deepEqual(await runDuet([command], { env }), { code: 1, stdout: '', stderr })
      assert.deepEqual(await execute(url, "select tablename from pg_tables where schemaname = 'public'"), [])
    })
  }
})

async function execute(url: string, statement: string): Promise<readonly unknown[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(statement)).rows
  } finally {
    await client.end()
  }
}
