import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { engineKinds, sqlite, type TestDatabase } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { execute } from './execute.ts'
import { assertSound, History, judgeOn, summarise } from './history.ts'
import { startServer } from './instance.ts'
import { attempt, resolveUnknowns, runWorkers } from './payers.ts'
import { Wire } from './wire.ts'

const payers = 16
const payments = inForm(50, 2000)

for (const kind of engineKinds) {
  test(`F6: a lost answer of a server on ${kind.name} leaves one payment for each key when the client repeats its request`, {
    skip: kind.skip,
  }, async t => {
    await using database = await kind.create()
    await using instance = await startServer(database)
    await using wire = await Wire.to(new URL(instance.url))
    const history = new History()
    for (const lose of [loseAfterRequest, loseWithinAnswer]) {
      lose(wire)
      const { verdict, unanswered } = await payAndAskAgain(database, wire, history)
      t.diagnostic(`${unanswered} answers lost: ${summarise(verdict)}`)
      assert.equal(unanswered, payments)
      assertSound(verdict)
    }
    assert.deepEqual(instance.faults, [])
  })
}

test('this test fails if payments are stored without their keys', async () => {
  await using database = await sqlite.create()
  await execute(
    database,
    `create trigger forget_keys after insert on idempotency_keys
     begin delete from idempotency_keys where id = new.id; end`,
  )
  await using app = await startTestApp({ DATABASE_URL: `sqlite:${database.location}`, RATE_LIMIT_MAX: '0' })
  await using wire = await Wire.to(new URL(app.url))
  loseWithinAnswer(wire)
  const { verdict } = await payAndAskAgain(database, wire, new History())
  assert.equal(verdict.offences.double.length, payments)
})

/** Every payer loses every answer, and then repeats its request over a working connection. */
async function payAndAskAgain(database: TestDatabase, wire: Wire, history: History) {
  const url = `http://127.0.0.1:${wire.port}`
  let left = payments
  let unanswered = 0
  await runWorkers(payers, async () => {
    while (left-- > 0) if ((await attempt(history, url, history.intend())) === undefined) unanswered++
  })
  wire.fromClient = wire.fromServer = () => 'pass'
  await resolveUnknowns(history, url)
  return { verdict: await judgeOn(database, history), unanswered }
}

/** The connection is cut once the request has passed: the server processes it, and the client gets nothing. */
function loseAfterRequest(wire: Wire): void {
  wire.fromClient = (data, { client, server }) => {
    if (!data.includes('"amount"')) return 'pass'
    server.end(data)
    client.resetAndDestroy()
    return 'keep'
  }
  wire.fromServer = () => 'keep'
}

/** The connection is cut while the answer comes, after a part of any length. */
function loseWithinAnswer(wire: Wire): void {
  wire.fromServer = (data, { client, server }) => {
    client.end(data.subarray(0, Math.floor(Math.random() * data.length)))
    server.destroy()
    return 'keep'
  }
}
