import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { anonymous } from '../../src/core/actor.ts'
import type { UserStore } from '../../src/core/store.ts'
import { Users, type UsersParts } from '../../src/core/users/operations.ts'

it('of pages of more than 100 users, one is read at a time, and shorter pages do not wait for it', async () => {
  let reading = 0
  let most = 0
  const listUsers: UserStore['listUsers'] = async ({ limit }) => {
    if (limit > 100) most = Math.max(most, ++reading)
    await turn()
    return { parts: [], last: undefined, more: false }
  }
  const parts = { store: { listUsers }, access: { require: () => {} } } as unknown as UsersParts
  const users = new Users(parts)
  const list = (limit: number) =>
    users.list(
      anonymous,
      () => ({ limit, offset: 0 }),
      async () => {
        await turn()
        if (limit > 100) reading--
      },
    )
  const all = Array.from({ length: 10 }, () => list(101))
  const first = await Promise.race([...all.slice(1), list(100)])
  assert.equal(first.limit, 100)
  await Promise.all(all)
  assert.equal(most, 1)
})
