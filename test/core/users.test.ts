import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { anonymous } from '../../src/core/actor.ts'
import type { UserStore } from '../../src/core/store.ts'
import { Users, type UsersParts } from '../../src/core/users/operations.ts'

describe('Of pages of more than 100 users', () => {
  it('one is read at a time, and pages with fewer users do not wait for it', async () => {
    let reading = 0
    let most = 0
    const list = listing(async () => {
      most = Math.max(most, ++reading)
      for (let turns = 0; turns < 10; turns++) await turn()
      reading--
    })
    const all = Array.from({ length: 10 }, () => list(101))
    for (const short of [list(100), list(1_000, false)]) {
      const { limit } = await Promise.race([...all.slice(1), short])
      assert.equal(limit, (await short).limit)
    }
    await Promise.all(all)
    assert.equal(most, 1)
  })

  it('none waits for more than 5 seconds, also while another is read for longer', async t => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const held = Promise.withResolvers<void>()
    const list = listing(() => held.promise)
    const [slow, late] = [list(101), assert.rejects(list(101), { code: 'unavailable' })]
    for (let turns = 0; turns < 5; turns++) await turn() // until both have asked
    now = 1
    const inTime = list(101)
    for (let turns = 0; turns < 5; turns++) await turn()
    now = 5_001
    held.resolve()
    await Promise.all([slow, late, inTime])
  })

  it('each has memory of its own, because it is freed, and keeps none of it while it waits', async () => {
    const reads: (string | boolean)[] = []
    const list = listing(async () => {}, reads)
    await list(100)
    assert.deepEqual(reads.splice(0), ['first', false])
    await Promise.all([list(101), list(101)])
    const [one, other] = [
      ['first', true, 'first', true],
      ['rest', true, 'first', true, 'rest', true],
    ]
    assert.deepEqual(reads, [...one, ...other])
  })
})

/** Lists so many users of a store that does this to read those after the first 100. */
function listing(read: () => Promise<void>, reads: (string | boolean)[] = []) {
  const listUsers: UserStore['listUsers'] = async ({ offset, after }, own) => {
    reads.push(after === undefined ? 'first' : 'rest', own)
    if (after !== undefined) await read()
    return { parts: [], last: 1, more: offset === 0 }
  }
  const users = new Users({ store: { listUsers }, access: { require: () => {} } } as unknown as UsersParts)
  return (limit: number, areMany = true) =>
    users.list(
      anonymous,
      () => ({ limit, offset: areMany ? 0 : 1 }),
      async () => turn(),
    )
}
