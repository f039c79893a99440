import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { anonymous } from '../../src/core/actor.ts'
import { profileOf } from '../../src/core/users/user.ts'
import { seedDemoData } from '../../src/storage/entities/demo-data.ts'
import { type Statement, sql } from '../../src/storage/sql.ts'
import { createStore } from '../../src/storage/store.ts'
import { catalogue } from '../../src/storage/verbs.ts'
import { assertLedger } from '../rest/ledger.ts'
import { engineKinds } from '../support/engines.ts'

const passwords = { hash: async (password: string) => `hash of ${password}`, matches: async () => false }
const randomness = { id: () => 'version' }
const user = { name: 'n', email: 'e@x', ...profileOf(() => null), password: null, tokenVersion: 'm' }

for (const kind of engineKinds) {
  describe(`Demo data on ${kind.name}`, { skip: kind.skip }, () => {
    it('has the ids that the documentation uses, and does not use the next ids', async () => {
      await using database = await kind.create()
      await using engine = database.open(catalogue)
      assert.equal(await seedDemoData(engine, passwords, randomness), 'seeded')
      const rows = (statement: Statement) => engine.read(statement)
      const hash = 'hash of demo-password'
      const logins = await rows(sql`select id, login_key, role, password_hash from users where id <= 2 order by id`)
      assert.deepEqual(logins, [
        [1, 'ada@example.com', 'admin', hash],
        [2, 'grace@example.com', 'member', hash],
      ])
      assert.deepEqual(await rows(sql`select count(*), max(id) from users`), [[5, 5]])
      assert.deepEqual(await rows(sql`select count(*), max(id) from posts`), [[20, 20]])
      assert.notDeepEqual(await rows(sql`select count(*) from comments`), [[0]])
      const miscounted = await rows(sql`select id from posts
        where comment_count <> (select count(*) from comments where post_id = posts.id)`)
      assert.deepEqual(miscounted, [])
      assert.deepEqual(await rows(sql`select user_id, status, tracking_number from orders where id <= 2 order by id`), [
        [1, 'pending_payment', null],
        [1, 'shipped', 'DX00000002'],
      ])
      await assertLedger(engine)
      const others = await rows(sql`select count(*) from orders where user_id > 1`)
      assert.ok(Number(others[0]?.[0]) > 2)
      const created = await createStore(engine).createUser(user, anonymous)
      assert.ok(typeof created !== 'string' && created.id === 6)
    })

    it('is written once, and only into a database that never had a user', async () => {
      await using database = await kind.create()
      await using engine = database.open(catalogue)
      const both = await Promise.all([1, 2].map(() => seedDemoData(engine, passwords, randomness)))
      assert.deepEqual(both.sort(), ['not empty', 'seeded'])
      for (let id = 1; id <= 5; id++) await engine.write('deleteUser', id, { kind: 'anonymous' })
      assert.equal(await seedDemoData(engine, passwords, randomness), 'not empty')
      assert.deepEqual(await engine.read(sql`select count(*) from users`), [[0]])
    })

    for (const left of ['nothing', 'an order of a user with a chosen id'])
      it(`is not written where a user was who left ${left}`, async () => {
        await using database = await kind.create()
        await using engine = database.open(catalogue)
        const rights = { actor: anonymous, mayChangePassword: true, mayCreate: true }
        if (left === 'nothing') await engine.write('createUser', user)
        else await engine.write('replaceUser', 1, user, rights)
        if (left !== 'nothing') await engine.write('createOrder', 1, [{ name: 'n', quantity: 1, price: 1 }], anonymous)
        await engine.write('deleteUser', 1, anonymous)
        assert.equal(await seedDemoData(engine, passwords, randomness), 'not empty')
      })
  })
}
