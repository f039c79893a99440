import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { anonymous } from '../../src/core/actor.ts'
import type { UserStore } from '../../src/core/store.ts'
import { Users, type UsersParts } from '../../src/core/users/operations.ts'

describe('Of pages of more than 100 users', () => {
  it('one is read at a time, and shorter pages do not wait for it', async () => {
    let reading = 0
    let most = 0
    const list = listing(async limit => {
      if (limit > 100) most = Math.max(most, ++reading)
      await turn()
      if (limit > 100) reading--
    })
    const all = Array.from({ length: 10 }, () => list(101))
    const first = await Promise.race([...all.slice(1), list(100)])
    assert.equal(first.limit, 100)
    await Promise.all(all)
    assert.equal(most, 1)
  })

  it('none waits for more than 5 seconds, also while another is read for longer', async t => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const held = Promise.withResolvers<void>()
    const list = listing(() => held.promise)
    const [slow, late] = [list(101), assert.rejects(list(101), { code: 'unavailable' })]
    now = 1
    const inTime = list(101)
    now = 5_001
    held.resolve()
    await Promise.all([slow, late, inTime])
  })
})

/** Lists so many users of a store that does this to read them. */
function listing(read: (limit: number) => Promise<void>) {
  const listUsers: UserStore['listUsers'] = async ({ limit }) => {
    await read(limit)
    return { parts: [], last: undefined, more: false }
  }
  const users = new Users({ store: { listUsers }, access: { require: () => {} } } as unknown as UsersParts)
  return (limit: number) =>
    users.list(
      anonymous,
      () => ({ limit, offset: 0 }),
      async () => turn(),
    )
}
