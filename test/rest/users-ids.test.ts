import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefusal } from '../support/refusal.ts'
import { atOnce, bodyOf, createUser, logIn, send, somebody, tally, type UserBody } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

const password = 'right password'
const taken = 'Email is already in use'

for (const kind of engineKinds) {
  describe(`Ids of users on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind))

    const choose = async (id: number) => bodyOf(await send(app, `PUT /users/${id}`, somebody()), 201)

    it('R-USR-2: an assigned id is never assigned again, even after its user is deleted', async () => {
      const seen = new Set<number>()
      for (let count = 0; count < 6; count++) {
        const { id } = await createUser(app)
        assert.ok(!seen.has(id))
        seen.add(id)
        await send(app, `DELETE /users/${id}`)
      }
    })

    it('assigned ids skip the ids that clients chose, single ones and sequences', async () => {
      const { id } = await createUser(app)
      const chosen = [await choose(id + 1), await choose(id + 3), await choose(id + 4), await choose(id + 5)]
      const assigned = [await createUser(app), await createUser(app), await createUser(app)]
      assert.deepEqual(
        assigned.map(user => user.id),
        [id + 2, id + 6, id + 7],
      )
      for (const user of chosen) assert.deepEqual(bodyOf(await send(app, `GET /users/${user.id}`)), user)
    })

    it('R-USR-11: the largest id can be chosen, and no chosen id, however large, stops creation', async () => {
      const { id } = await createUser(app)
      for (const large of [2147483648, 4294967296, 9007199254740990, 9007199254740991]) {
        assert.deepEqual(bodyOf(await send(app, `GET /users/${(await choose(large)).id}`)).id, large)
      }
      // Not always the next one: another test may have chosen that.
      const next = await createUser(app)
      assert.ok(next.id > id && next.id < id + 100, `${next.id} after ${id}`)
      assertRefusal(await send(app, 'PUT /users/9007199254740992', somebody()), 400)
    })

    it('users created concurrently, by POST and by PUT to the next ids, get different ids', async () => {
      const { id } = await createUser(app)
      const answers = await atOnce(40, index =>
        index % 2 ? send(app, `PUT /users/${id + index}`, somebody()) : send(app, 'POST /users', somebody()),
      )
      const created = answers.filter(({ status }) => status === 201).map(answer => bodyOf<UserBody>(answer, 201))
      assert.equal(created.length + (tally(answers)[200] ?? 0), 40, JSON.stringify(tally(answers)))
      assert.equal(new Set(created.map(user => user.id)).size, created.length)
      // A PUT replaces the user if a POST got the same id before it. All POSTs create users.
      assert.ok(answers.every(({ status }, index) => index % 2 === 1 || status === 201))
    })

    it('creating a user while its next id is repeatedly chosen and deleted causes no internal error', async () => {
      for (let round = 0; round < 6; round++) {
        const { id } = await createUser(app)
        const next = `/users/${id + 1}`
        const answers = await atOnce(12, index =>
          index % 3 === 0
            ? send(app, `PUT ${next}`, somebody())
            : index % 3 === 1
              ? send(app, `DELETE ${next}`)
              : send(app, 'POST /users', somebody()),
        )
        assert.ok(
          answers.every(({ status }) => status < 300),
          JSON.stringify(tally(answers)),
        )
      }
    })

    it('of concurrent PUTs to one absent id one creates and all others replace', async () => {
      const answers = await atOnce(12, () => send(app, 'PUT /users/90000', { name: 'One', email: 'one@example.com' }))
      assert.deepEqual(tally(answers), { 200: 11, 201: 1 })
    })
  })

  describe(`E-mails of users on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind, { LOGIN_LIMIT_MAX: '0' }))

    it('the e-mail of a user with a password cannot be used by another user with a password, in any case of letters: 409', async () => {
      const { id, email } = await createUser(app, { email: 'Ada@Example.com', password })
      for (const same of [email, 'ada@example.com', 'ADA@EXAMPLE.COM']) {
        assertRefusal(await send(app, 'POST /users', { name: 'A', email: same, password }), 409, taken)
        assertRefusal(await send(app, 'PUT /users/5000', { name: 'A', email: same, password }), 409, taken)
      }
      assertRefusal(await send(app, 'GET /users/5000'), 404)
      assert.equal(
        bodyOf(await send(app, 'GET /users/me', undefined, await logIn(app, 'aDa@eXample.com', password))).id,
        id,
      )
    })

    it('a user with a password cannot change to a taken e-mail, and a user with a shared e-mail cannot get a password: 409', async () => {
      const { email } = await createUser(app, { password })
      const other = await createUser(app, { password })
      const sharing = await createUser(app, { email })
      const upper = email.toUpperCase()
      assertRefusal(await send(app, `PATCH /users/${other.id}`, { name: 'B', email: upper }), 409, taken)
      assertRefusal(await send(app, `PUT /users/${other.id}`, { name: 'B', email: upper }), 409, taken)
      assertRefusal(await send(app, `PATCH /users/${sharing.id}`, { age: 1, password }), 409, taken)
      assertRefusal(await send(app, `PUT /users/${sharing.id}`, { name: 'B', email, password }), 409, taken)
      for (const user of [other, sharing]) assert.deepEqual(bodyOf(await send(app, `GET /users/${user.id}`)), user)
      await logIn(app, other.email, password)
    })

    it('users without a password may share an e-mail, and the user with a password can still log in', async () => {
      const first = await createUser(app)
      const second = await createUser(app, { email: first.email })
      const owner = await createUser(app, { email: first.email, password })
      const third = await createUser(app, { email: first.email })
      bodyOf(await send(app, `PATCH /users/${third.id}`, { email: first.email.toUpperCase() }))
      assert.equal(new Set([first.id, second.id, owner.id, third.id]).size, 4)
      const token = await logIn(app, first.email, password)
      assert.equal(bodyOf(await send(app, 'GET /users/me', undefined, token)).id, owner.id)
    })

    it('a user may keep its own e-mail, also in another case of letters, and a former e-mail can be used by others', async () => {
      const { id, name, email } = await createUser(app, { password })
      const upper = email.toUpperCase()
      assert.deepEqual(bodyOf(await send(app, `PATCH /users/${id}`, { email: upper })), { id, name, email: upper })
      assert.deepEqual(bodyOf(await send(app, `PUT /users/${id}`, { name, email })), { id, name, email })
      bodyOf(await send(app, `PATCH /users/${id}`, { email: 'moved@example.com' }))
      await createUser(app, { email, password })
    })

    it('of users created concurrently with one e-mail and a password one is created, and the others get 409', async () => {
      const { email } = somebody()
      const answers = await atOnce(8, index =>
        index % 2
          ? send(app, 'POST /users', { name: 'A', email: email.toUpperCase(), password })
          : send(app, `PUT /users/${7000 + index}`, { name: 'A', email, password }),
      )
      assert.deepEqual(tally(answers), { 201: 1, 409: 7 })
      await logIn(app, email, password)
    })

    it('of users that change to one e-mail concurrently one gets it, and the others get 409', async () => {
      const { email } = somebody()
      const movers = await atOnce(6, () => createUser(app, { password }))
      const answers = await Promise.all(movers.map(({ id }) => send(app, `PATCH /users/${id}`, { email })))
      assert.deepEqual(tally(answers), { 200: 1, 409: 5 })
    })

    it('an e-mail that is given up and taken at the same time causes no internal error', async () => {
      for (let round = 0; round < 2; round++) {
        const { id, email } = await createUser(app, { password })
        const answers = await atOnce(8, index =>
          index === 4 ? send(app, `DELETE /users/${id}`) : send(app, 'POST /users', { name: 'A', email, password }),
        )
        const { 201: created = 0, 204: deleted, 409: refused = 0 } = tally(answers)
        assert.deepEqual({ deleted, others: created + refused }, { deleted: 1, others: 7 })
        assert.ok(created <= 1)
      }
    })
  })
}
