import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from '../../src/storage/sql.ts'
import { catalogue } from '../../src/storage/verbs.ts'
import { startTestApp } from '../support/app.ts'
import { engineKinds, postgres, sqlite, type TestDatabase } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { impatient, waitUntil } from '../support/wait.ts'
import { execute } from './execute.ts'
import { assertSound, History, judgeOn } from './history.ts'
import { startServer } from './instance.ts'
import { attempt, resolveUnknowns, runWorkers } from './payers.ts'
import { type Decision, Wire } from './wire.ts'

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
      assert.equal(await payAndAskAgain(wire, history), payments)
      await assertSound(t, database, history)
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
  await using app = await startTestApp({ DATABASE_URL: database.url, RATE_LIMIT_MAX: '0' })
  await using wire = await Wire.to(new URL(app.url))
  loseWithinAnswer(wire)
  const history = new History()
  await payAndAskAgain(wire, history)
  assert.equal((await judgeOn(database, history)).offences.double.length, payments)
})

/** Every payer loses every answer, and then repeats its request over a working connection. Returns how many were lost. */
async function payAndAskAgain(wire: Wire, history: History): Promise<number> {
  const url = `http://127.0.0.1:${wire.port}`
  let left = payments
  let unanswered = 0
  await runWorkers(payers, async () => {
    while (left-- > 0) if ((await attempt(history, url, history.intend())) === undefined) unanswered++
  })
  wire.fromClient = wire.fromServer = () => 'pass'
  await resolveUnknowns(history, url)
  return unanswered
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

const unknown = 'The outcome is unknown. Read before you repeat, or repeat with the same Idempotency-Key.'

test('F4: a connection to PostgreSQL that is cut around COMMIT leaves one payment for each key: the client gets 503 with the advice to repeat with the same key, which gets the result', {
  skip: postgres.skip,
}, async t => {
  await using database = await postgres.create()
  await using proxy = await Wire.to(new URL(database.location))
  await using instance = await startServer(behind(proxy, database))
  const history = new History()
  for (const moment of ['cut before', 'cut after', 'cut long before'] as const) {
    const done = cutSomeCommits(proxy, moment, inForm(12, 300))
    await runWorkers(payers, async () => {
      while (!done()) await attempt(history, instance.url, history.intend())
    })
  }
  proxy.fromClient = () => 'pass'
  await resolveUnknowns(history, instance.url)
  // This server has a wire of its own, on which no other one commits.
  await using wire = await Wire.to(new URL(database.location))
  await using engine = database.open(catalogue)
  await using hasty = await startServer(behind(wire, database), impatient)
  for (let round = 0; round < inForm(1, 10); round++) {
    for (const moment of ['cut before', 'cut after'] as const) {
      cutCommitAndAllThatFollows(wire, moment)
      const intent = history.intend()
      const answer = await attempt(history, hasty.url, intent)
      assert.equal(answer?.status, 503)
      assert.deepEqual(JSON.parse(answer.body), { error: unknown })
      wire.fromClient = () => 'pass'
      const stored = () => engine.read(sql`select id from idempotency_keys where key = ${intent.key}`)
      if (moment === 'cut after') await waitUntil(async () => (await stored()).length > 0)
      // Whether it was paid or not, the repeated request gets the right answer.
      assert.equal((await attempt(history, instance.url, intent))?.status, moment === 'cut after' ? 200 : 201)
    }
  }
  const { unknowns } = await assertSound(t, database, history)
  assert.equal(unknowns, 0) // the server always answers, even without its database
  assert.deepEqual([...instance.faults, ...hasty.faults], [])
})

const behind = (proxy: Wire, { url }: TestDatabase) => ({ url: proxy.through(url) })

/** Selects every third commit, up to a maximum number. */
function cutSomeCommits(proxy: Wire, moment: Decision, cuts: number): () => boolean {
  let commits = 0
  proxy.fromClient = data => (isCommit(data) && ++commits % 3 === 0 ? moment : 'pass')
  return () => commits >= 3 * cuts
}

function cutCommitAndAllThatFollows(proxy: Wire, moment: Decision): void {
  let away = false
  proxy.fromClient = data => {
    if (away) return 'cut before'
    away = isCommit(data)
    return away ? moment : 'pass'
  }
}

const isCommit = (data: Buffer): boolean => data.includes('commit\0')
