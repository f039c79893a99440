import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { User, UserPart } from '../../src/core/users/user.ts'
import { searchOfUsers } from '../../src/storage/entities/user-search.ts'
import type { Statement } from '../../src/storage/sql.ts'
import { catalogue } from '../../src/storage/verbs.ts'
import { execute } from '../faults/execute.ts'
import { engineKinds } from '../support/engines.ts'

for (const kind of engineKinds) {
  it(`a page of a search for users is full although some are deleted and renamed before they are read, on ${kind.name}`, {
    skip: kind.skip,
  }, async () => {
    await using database = await kind.create()
    await execute(
      database,
      `insert into users (id, name, email, email_key, name_key, token_mark, created_at)
       with recursive n(i) as (select 1 union all select i + 1 from n where i < 2010)
       select i, 'N', 'E', 'e', case when i < 6 then 'few' else 'many' end, 'mark', '2026-01-01T00:00:00.000Z' from n`,
    )
    await using engine = database.open(catalogue)
    for (const [text, found, changes] of [
      ['few', [1, 4, 5], 'delete from users where id = 2; update users set name_key = name where id = 3'],
      ['many', [6, 9, 10], 'delete from users where id = 7; update users set name_key = name where id = 8'],
    ] as const) {
      const read = async (statement: Statement) => {
        const rows = await engine.read(statement)
        if (/^select id from/.test(statement.text)) await execute(database, changes)
        return rows
      }
      const { parts, more } = await searchOfUsers({ read, dialect: engine.dialect })(text, { limit: 3, offset: 0 })
      assert.deepEqual(parts.flatMap(idsIn), found)
      assert.equal(more, text === 'many')
      const search = () => searchOfUsers(engine)(text, { limit: 3, offset: 0 })
      const [page, equal] = await Promise.all([search(), search()])
      const both = page.parts.filter(part => equal.parts.includes(part))
      assert.deepEqual(both, [], 'its memory is freed when it is sent')
    }
    await execute(database, `update users set id = ${Number.MAX_SAFE_INTEGER} where id = 5`)
    const { parts } = await searchOfUsers(engine)('few', { limit: 1, offset: 0, sort: '-id' })
    assert.deepEqual(parts.flatMap(idsIn), [Number.MAX_SAFE_INTEGER])
  })
}

function idsIn(part: UserPart): readonly number[] {
  const users = part instanceof Uint8Array ? (JSON.parse(`[${Buffer.from(part)}]`) as User[]) : part
  return users.map(({ id }) => id)
}
