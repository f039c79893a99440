import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { anonymous } from '../../src/core/actor.ts'
import type { UserStore } from '../../src/core/store.ts'
import { Users, type UsersParts } from '../../src/core/users/operations.ts'

it('of pages of more than 100 users, four are read at the same time, and others wait for none of them', async () => {
  let most = 0
  const reading = new Set<number>()
  const listUsers: UserStore['listUsers'] = async ({ limit, after = 0 }) => {
    const page = Math.floor(after / 1_000)
    reading.add(page)
    most = Math.max(most, reading.size)
    await turn()
    const isLast = (after % 1_000) + limit >= 250
    if (isLast) reading.delete(page)
    const user = { name: '', email: '', age: null, avatar: null }
    return Array.from({ length: limit + 1 }, (_, at) => ({ ...user, id: after + at + 1 }))
  }
  const parts = { store: { listUsers }, access: { require: () => {} } } as unknown as UsersParts
  const users = new Users(parts)
  const list = (limit: number, page: number) =>
    users.list(anonymous, () => ({ limit, offset: 0, sort: 'id', after: page * 1_000 }))
  const pages = await Promise.all(Array.from({ length: 10 }, (_, page) => list(250, page)))
  assert.deepEqual(
    pages.map(({ items }) => items.length),
    Array(10).fill(250),
  )
  assert.equal(most, 4)
  const first = await Promise.race([...Array.from({ length: 10 }, (_, page) => list(250, page)), list(100, 10)])
  assert.equal(first.limit, 100)
})
