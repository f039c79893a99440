import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { Access } from '../../src/core/access.ts'
import { type Actor, anonymous } from '../../src/core/actor.ts'
import { unconditional } from '../../src/core/condition.ts'
import { AppError } from '../../src/core/errors.ts'
import { Users } from '../../src/core/users/operations.ts'
import { MemoryEventBus } from '../../src/events/memory-event-bus.ts'
import { createStore } from '../../src/storage/store.ts'
import { catalogue } from '../../src/storage/verbs.ts'
import { engineKinds } from '../support/engines.ts'

const always = () => unconditional

for (const kind of engineKinds) {
  describe(`A write whose token is revoked while its password is being hashed, on ${kind.name}`, {
    skip: kind.skip,
  }, () => {
    it('is refused, and neither creates the user again nor changes the password', async () => {
      await using database = await kind.create()
      await using engine = database.open(catalogue)
      const store = createStore(engine)
      const hashing = { wait: Promise.resolve(), asked: () => {} }
      const passwords = {
        async hash(password: string) {
          hashing.asked()
          await hashing.wait
          return `hash of ${password}`
        },
        matches: async () => false,
      }
      const users = new Users({
        store,
        access: new Access('enforced'),
        passwords,
        randomness: { id: randomUUID },
        bus: new MemoryEventBus(),
      })
      const input = (password: string) => () => ({ name: 'Ada', email: 'ada@example.com', password })

      for (const meanwhile of ['delete', 'change'] as const) {
        const { id } = await users.create(anonymous, input(`first-${meanwhile}`))
        const tokenState = await store.tokenState(id)
        assert.ok(tokenState)
        const owner: Actor = { kind: 'user', id, ...tokenState }
        const { promise, resolve } = Promise.withResolvers<void>()
        const asked = Promise.withResolvers<void>()
        hashing.wait = promise
        hashing.asked = asked.resolve
        const late = users.replace(owner, id, input('too-late'), always)
        await asked.promise
        hashing.wait = Promise.resolve()
        if (meanwhile === 'delete') await users.delete(owner, id, always)
        else await users.change(owner, id, () => ({ password: 'just-in-time' }), always)
        resolve()
        await assert.rejects(late, error => error instanceof AppError && error.code === 'unauthenticated')
        const known = await store.credentials('ada@example.com')
        assert.equal(known?.passwordHash, meanwhile === 'delete' ? undefined : 'hash of just-in-time')
      }
    })
  })
}
