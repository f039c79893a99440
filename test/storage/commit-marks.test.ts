import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import pg from 'pg'
import { postgres } from '../support/engines.ts'
import { migrationsOf } from '../support/templates.ts'
import { catalogue, notes } from './contract-verbs.ts'

describe('Commit marks on PostgreSQL', { skip: postgres.skip }, () => {
  it('of lost connections are deleted after a day while a server runs, unless they are in use', async () => {
    await using database = await postgres.create()
    await database.migrate([...migrationsOf('postgres'), notes])
    const other = new pg.Client({ connectionString: database.location })
    await other.connect()
    const mark = (slot: string, age: string) =>
      other.query(`insert into commit_marks values ($1, 1, now() - $2::interval)`, [slot, age])
    for (let index = 0; index < 50; index++) await mark(`old-${index}`, '25 hours')
    await mark('in use', '25 hours')
    await mark('fresh', '23 hours')
    await other.query(`begin; select * from commit_marks where slot = 'in use' for update`)
    await using engine = database.open(catalogue)
    await engine.write('put', 'a', 'v')
    await other.query('rollback')
    const { rows } = await other.query(`select slot from commit_marks where slot !~ '^[0-9a-f-]{36}$' order by slot`)
    await other.end()
    assert.deepEqual(
      rows.map(({ slot }) => slot),
      ['fresh', 'in use'],
    )
  })
})
