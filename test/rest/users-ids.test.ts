import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefusal } from '../support/refusal.ts'
import { atOnce, bodyOf, createUser, logIn, send, somebody, tally } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

const password = 'right password'

for (const kind of engineKinds) {
  describe(`Ids of users on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind))

    const choose = async (id: number) => bodyOf(await send(app, `PUT /users/${id}`, somebody()), 201)

    it('R-USR-2: an assigned id is never assigned again, even after its user is deleted', async () => {
      const seen = new Set<number>()
      for (let count = 1; count <= 6; count++) {
        const { id } = await createUser(app)
        assert.equal(seen.add(id).size, count)
        await send(app, `DELETE /users/${id}`)
      }
    })

    it('assigned ids skip the ids that clients chose, single ones and sequences', async () => {
      const { id } = await createUser(app)
      const chosen = [await choose(id + 1), await choose(id + 3), await choose(id + 4), await choose(id + 5)]
      for (const assigned of [id + 2, id + 6, id + 7]) assert.equal((await createUser(app)).id, assigned)
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

    it('users created while their next ids are chosen and deleted get different ids, and no request fails', async () => {
      for (let round = 0; round < 3; round++) {
        const { id } = await createUser(app)
        const answers = await atOnce(24, index => {
          const chosen = `/users/${id + 1 + (index % 4)}`
          if (index % 3 === 0) return send(app, 'POST /users', somebody())
          return index % 3 === 1 ? send(app, `PUT ${chosen}`, somebody()) : send(app, `DELETE ${chosen}`)
        })
        for (const { status, body } of answers) assert.ok([200, 201, 204].includes(status), body)
        const assigned = answers.filter((_, index) => index % 3 === 0).map(answer => bodyOf(answer, 201).id)
        assert.equal(new Set(assigned).size, assigned.length)
      }
    })

    it('of concurrent PUTs to one absent id one creates and all others replace', async () => {
      const answers = await atOnce(12, () => send(app, 'PUT /users/90000', somebody()))
      assert.deepEqual(tally(answers), { 200: 11, 201: 1 })
    })
  })

  describe(`E-mails of users on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind, { LOGIN_LIMIT_MAX: '0' }))

    it('the e-mail of a user with a password cannot be taken by another user with a password, in any way and case of letters: 409', async () => {
      const { id, email } = await createUser(app, { email: 'Ada@Example.com', password })
      const other = await createUser(app, { password })
      const sharing = await createUser(app, { email })
      for (const same of [email, 'ada@example.com', 'ADA@EXAMPLE.COM']) {
        for (const [line, body] of [
          ['POST /users', { name: 'A', email: same, password }],
          ['PUT /users/5000', { name: 'A', email: same, password }],
          [`PATCH /users/${other.id}`, { name: 'B', email: same }],
          [`PUT /users/${other.id}`, { name: 'B', email: same }],
          [`PATCH /users/${sharing.id}`, { age: 1, password }],
          [`PUT /users/${sharing.id}`, { name: 'B', email: same, password }],
        ] as const)
          assertRefusal(await send(app, line, body), 409, 'Email is already in use')
      }
      assertRefusal(await send(app, 'GET /users/5000'), 404)
      for (const user of [other, sharing]) assert.deepEqual(bodyOf(await send(app, `GET /users/${user.id}`)), user)
      await logIn(app, other.email, password)
      const token = await logIn(app, 'aDa@eXample.com', password)
      assert.equal(bodyOf(await send(app, 'GET /users/me', undefined, token)).id, id)
    })

    it('users without a password may share an e-mail, and the user with a password can still log in', async () => {
      const { email } = await createUser(app)
      const owner = await createUser(app, { email, password })
      const other = await createUser(app, { email })
      bodyOf(await send(app, `PATCH /users/${other.id}`, { email: email.toUpperCase() }))
      const token = await logIn(app, email, password)
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

    it('an e-mail that several users want at the same moment, by POST, PUT and PATCH, is given to one, and the others get 409', async () => {
      const { email } = somebody()
      const movers = await atOnce(4, () => createUser(app, { password }))
      const answers = await atOnce(12, index => {
        const [mover] = movers.splice(0, index % 3 === 0 ? 1 : 0)
        if (mover !== undefined) return send(app, `PATCH /users/${mover.id}`, { email })
        if (index % 3 === 1) return send(app, 'POST /users', { name: 'A', email: email.toUpperCase(), password })
        return send(app, `PUT /users/${7000 + index}`, { name: 'A', email, password })
      })
      const { 200: moved = 0, 201: created = 0, 409: refused } = tally(answers)
      assert.deepEqual([moved + created, refused], [1, 11])
      await logIn(app, email, password)
    })

    it('an e-mail that is given up and taken at the same time causes no internal error', async () => {
      const { id, email } = await createUser(app, { password })
      const answers = await atOnce(8, index =>
        index === 4 ? send(app, `DELETE /users/${id}`) : send(app, 'POST /users', { name: 'A', email, password }),
      )
      const { 201: created = 0, 204: deleted, 409: refused = 0 } = tally(answers)
      assert.deepEqual([deleted, created + refused], [1, 7])
      assert.ok(created <= 1)
    })
  })
}
