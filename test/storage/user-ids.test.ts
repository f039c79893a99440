import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { anonymous } from '../../src/core/actor.ts'
import type { UserValues } from '../../src/core/store.ts'
import type { User } from '../../src/core/users/user.ts'
import { profileOf } from '../../src/core/users/user.ts'
import { userVerbs } from '../../src/storage/entities/users.ts'
import { type Row, sql } from '../../src/storage/sql.ts'
import type { Rollback, Steps } from '../../src/storage/verb.ts'
import { postgres } from '../support/engines.ts'
import { shared } from '../support/shared.ts'

/** Creates a user. Another transaction deletes the conflicting user at the moment of the conflict. */
function* createWhileDeleted(values: UserValues, inTheWay: number): Steps<User | string | Rollback<string>> {
  const steps = userVerbs.createUser(values)
  for (let rows: readonly Row[] = []; ; ) {
    const step = steps.next(rows)
    if (step.done) return step.value
    rows = yield step.value
    const refused = step.value.text.includes('insert into users') && rows.length === 0
    if (refused) yield sql`delete from users where id = ${inTheWay}`
  }
}

/** Replaces a user. Others create the same id just before and delete it just after, this many times. */
function* replaceWhileContended(id: number, values: UserValues, times: number): Steps<unknown> {
  const steps = userVerbs.replaceUser(id, values, mayChange)
  let left = times
  for (let rows: readonly Row[] = []; ; ) {
    const step = steps.next(rows)
    if (step.done) return step.value
    const contended = step.value.text.includes('insert into users') && left-- > 0
    if (contended) yield* userVerbs.replaceUser(id, somebody(), mayChange)
    rows = yield step.value
    if (contended) yield sql`delete from users where id = ${id}`
  }
}

const catalogue = { url: import.meta.url, verbs: { ...userVerbs, createWhileDeleted, replaceWhileContended } }
const mayChange = { actor: anonymous, mayChangePassword: true, mayCreate: true }
const largest = 9007199254740991

let people = 0

function somebody(password: UserValues['password'] = null): UserValues {
  return { name: 'A', email: `${++people}@example.com`, ...profileOf(() => null), password, tokenVersion: 'm' }
}

function idIn(outcome: User | string): number {
  return typeof outcome === 'string' ? assert.fail(outcome) : outcome.id
}

describe('Assigned ids while users are deleted, on PostgreSQL', { skip: postgres.skip }, () => {
  const engine = shared(async () => (await postgres.create()).open(catalogue))

  it('a chosen id that is deleted during the assignment does not make the counter jump', async () => {
    const id = idIn(await engine.write('createUser', somebody()))
    await engine.write('replaceUser', id + 1, somebody(), mayChange)
    assert.equal(idIn(await engine.write('createWhileDeleted', somebody(), id + 1)), id + 2)
    await engine.write('replaceUser', largest, somebody(), mayChange)
    await engine.write('replaceUser', id + 3, somebody(), mayChange)
    assert.equal(idIn(await engine.write('createWhileDeleted', somebody(), id + 3)), id + 4)
    assert.equal(idIn(await engine.write('createUser', somebody())), id + 5)
  })

  it('a taken e-mail whose user is deleted during the assignment does not make the counter jump', async () => {
    const values = somebody({ hash: 'h' })
    const id = idIn(await engine.write('createUser', values))
    await engine.write('replaceUser', largest - 1, somebody(), mayChange)
    assert.equal(idIn(await engine.write('createWhileDeleted', values, id)), id + 2)
    assert.equal(idIn(await engine.write('createUser', somebody())), id + 3)
  })
  it('a PUT succeeds while others repeatedly create and delete the same id', async () => {
    const { tokenVersion, password, ...values } = somebody()
    const outcome = await engine.write('replaceWhileContended', 700, { ...values, tokenVersion, password }, 5)
    assert.deepEqual(outcome, { user: { id: 700, ...values }, created: true })
  })
})
