import assert from 'node:assert/strict'
import { it, test } from 'node:test'
import { type Actor, anonymous, type IdentifiedUser } from '../../src/core/actor.ts'
import { unconditional } from '../../src/core/condition.ts'
import type { Claim } from '../../src/core/store.ts'
import { profileOf } from '../../src/core/users/user.ts'
import type { Engine } from '../../src/storage/engine.ts'
import type { ArgsOf, Verbs } from '../../src/storage/verb.ts'
import { catalogue, type verbs } from '../../src/storage/verbs.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { cheapPasswords } from '../support/passwords.ts'
import { assertRefusal } from '../support/refusal.ts'
import { createMember, logIn, send, somebody } from '../support/rest.ts'
import { everything } from '../support/tables.ts'

type VerbName = keyof typeof verbs

/** The verbs with an argument that is an actor or contains one. */
type VerbWithActor = {
  [Name in VerbName]: [Extract<ArgsOf<(typeof verbs)[Name]>[number], Actor | { readonly actor: Actor }>] extends [never]
    ? never
    : Name
}[VerbName]

/** The rows that the attempts use. They belong to another user, so they still exist after the actor is deleted. */
interface Scene {
  readonly userId: number
  readonly orderId: number
  readonly postId: number
}

type Attempts = {
  readonly [Name in VerbWithActor]: Readonly<
    Record<string, (actor: Actor, scene: Scene) => ArgsOf<(typeof verbs)[Name]>>
  >
}

// The types require every verb with an actor in this table.
const attempts: Attempts = {
  createUser: { 'create a user': actor => [newUser(), actor] },
  revokeTokens: { 'revoke own tokens': actor => [userIn(actor), newTokenVersion()] },
  replaceUser: {
    'replace a user': (actor, { userId }) => [userId, newUser(), rights(actor)],
    'create a user under a chosen id': actor => [newId(), newUser(), rights(actor)],
  },
  changeUser: { 'change a user': (actor, { userId }) => [userId, { name: 'Changed' }, rights(actor)] },
  changeRole: { 'change a role': (actor, { userId }) => [userIn(actor), userId, 'member', newTokenVersion()] },
  deleteUser: { 'delete a user': (actor, { userId }) => [userId, actor] },
  createOrder: { 'create an order': (actor, { userId }) => [userId, [{ name: 'Gear', quantity: 1, price: 7 }], actor] },
  cancelOrder: { 'cancel an order': (actor, { orderId }) => [orderId, actor, 'everyone'] },
  pay: {
    'make a payment': actor => [actor, { cents: 500 }, newClaim('/payments')],
    'pay an order': (actor, { orderId }) => [actor, { orderId, reach: 'everyone', condition: unconditional }, null],
    'pay an order with a key': (actor, { orderId }) => [
      actor,
      { orderId, reach: 'everyone', condition: unconditional },
      newClaim(`/orders/${orderId}/payment`),
    ],
  },
  changePosts: {
    'create a post': actor => [actor, [{ kind: 'create a post', title: 'Title', content: 'Content', show }]],
    'add a comment': (actor, { postId }) => [actor, [{ kind: 'add a comment', postId, text: 'Text', show }]],
    'like a post': (actor, { postId }) => [actor, [{ kind: 'like a post', id: postId, show }]],
    'update a post': (actor, { postId: id }) => [
      actor,
      [{ kind: 'update a post', id, title: 'New', content: null, ifUpdatedAt: null, reach: 'everyone', show }],
    ],
    'delete a post': (actor, { postId }) => [actor, [{ kind: 'delete a post', id: postId, reach: 'everyone' }]],
  },
}

for (const kind of engineKinds) {
  it(`a token that was revoked after it was checked lets its user do nothing any more, on ${kind.name}`, {
    skip: kind.skip,
  }, async t => {
    await using database = await kind.create()
    await using engine = database.open(catalogue)
    for (const [verb, ofVerb] of Object.entries(attempts)) {
      for (const [what, argsOf] of Object.entries(ofVerb)) {
        await t.test(what, async () => {
          for (const revoke of [undefined, changePassword, deleteUser]) {
            const [scene, admin] = [await createScene(engine), await createAdmin(engine)]
            await revoke?.(engine, admin.id)
            const found = await everything(engine)
            const outcome = await (engine as Engine<Verbs>).write(verb, ...(argsOf(admin, scene) as never[]))
            if (revoke === undefined) {
              assert.notDeepEqual(await everything(engine), found)
              continue
            }
            const expected = verb === 'changePosts' ? { refused: 'token revoked', at: 0 } : 'token revoked'
            assert.deepEqual(outcome, expected, revoke.name)
            assert.deepEqual(await everything(engine), found, revoke.name)
          }
        })
      }
    }
  })
}

const changePassword = (engine: Engine<typeof verbs>, id: number) =>
  engine.write('changeUser', id, { password: { hash: 'hash' }, tokenVersion: newTokenVersion() }, rights(anonymous))
const deleteUser = (engine: Engine<typeof verbs>, id: number) => engine.write('deleteUser', id, anonymous)

const rights = (actor: Actor) => ({ actor, mayChangePassword: true, mayCreate: true })
const userIn = (actor: Actor): IdentifiedUser => (actor.kind === 'user' ? actor : assert.fail())

async function createScene(engine: Engine<typeof verbs>): Promise<Scene> {
  const author = await createAdmin(engine)
  const order = await engine.write('createOrder', author.id, [{ name: 'Card', quantity: 2, price: 3 }], author)
  assert.ok(typeof order === 'object')
  const created = await engine.write('changePosts', author, [
    { kind: 'create a post', title: 'Title', content: 'Content', show },
  ])
  assert.ok(Array.isArray(created))
  return { userId: author.id, orderId: order.id, postId: Number(created[0]) }
}

async function createAdmin(engine: Engine<typeof verbs>): Promise<IdentifiedUser> {
  const user = await engine.write('createUser', newUser())
  assert.ok(typeof user !== 'string')
  const tokenVersion = newTokenVersion()
  await engine.write('setRole', { id: user.id }, 'admin', tokenVersion)
  return { kind: 'user', id: user.id, role: 'admin', tokenVersion }
}

/** The id of the created row, as text. */
const show = { text: 'select cast(cast($1 as bigint) as text)', values: [null], id: 0 } as const

let numbers = 0

function newUser() {
  const email = `person-${++numbers}@example.com`
  const password = { hash: 'hash' }
  return { name: 'Person', email, ...profileOf(() => null), password, tokenVersion: newTokenVersion() }
}

const newTokenVersion = (): string => `version-${++numbers}`

/** An id that the service has not assigned yet. */
const newId = (): number => 1_000_000 + ++numbers

const newClaim = (scope: string): Claim => ({ callerId: null, scope, key: `key-${++numbers}`, ttlSeconds: 60 })

for (const kind of engineKinds) {
  test(`a write whose token is revoked while its password is being hashed is refused, and neither creates the user again nor changes the password, on ${kind.name}`, {
    skip: kind.skip,
  }, async () => {
    const passwords = cheapPasswords()
    const [late, timely] = ['a late password', 'a timely password']
    let hashing = Promise.withResolvers<void>()
    let asked = Promise.withResolvers<void>()
    const hash = async (password: string) => {
      if (password === late) {
        asked.resolve()
        await hashing.promise
      }
      return await passwords.hash(password)
    }
    const matches = passwords.matches.bind(passwords)
    await using app = await startTestAppOn(kind, { ACCESS_POLICY: 'enforced' }, { passwords: { hash, matches } })
    for (const meanwhile of ['DELETE', 'PATCH']) {
      hashing = Promise.withResolvers()
      asked = Promise.withResolvers()
      const { id, email, token } = await createMember(app)
      const replaced = send(app, `PUT /users/${id}`, { ...somebody(), email, password: late }, token)
      await asked.promise
      await send(app, `${meanwhile} /users/${id}`, meanwhile === 'PATCH' ? { password: timely } : undefined, token)
      hashing.resolve()
      assertRefusal(await replaced, 401)
      assertRefusal(await send(app, 'POST /tokens', { email, password: late }), 401)
      if (meanwhile === 'PATCH') await logIn(app, email, timely)
    }
  })
}
