import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AppError } from '../../src/core/errors.ts'
import type { Migration } from '../../src/storage/migrate.ts'
import { sql } from '../../src/storage/sql.ts'
import { engineKinds } from '../support/engines.ts'
import { migrationsOf } from '../support/templates.ts'
import { catalogue, notes } from './contract-verbs.ts'

/** COMMIT checks this foreign key, so every statement succeeds and only the COMMIT fails. */
const children: Migration = {
  version: 10_000,
  name: 'children',
  script: `create table children (
             parent text not null references notes (key) deferrable initially deferred
           )`,
  checksum: 'children',
}

for (const kind of engineKinds) {
  describe(`A COMMIT that fails on ${kind.name}`, { skip: kind.skip }, () => {
    it('is never acknowledged and changes nothing, and the next write succeeds', async () => {
      await using database = await kind.create()
      await database.migrate([...migrationsOf(kind.kind), notes, children])
      await using engine = database.open(catalogue)
      const addChild = (parent: string) => engine.write('run', [sql`insert into children (parent) values (${parent})`])
      const stored = () => engine.read(sql`select parent from children`)
      await assert.rejects(addChild('nobody'), AppError)
      assert.deepEqual(await stored(), [])
      await engine.write('put', 'somebody', 'v')
      await addChild('somebody')
      assert.deepEqual(await stored(), [['somebody']])
    })
  })
}
