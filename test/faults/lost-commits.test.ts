import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from '../../src/storage/sql.ts'
import { catalogue } from '../../src/storage/verbs.ts'
import { postgres, type TestDatabase } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { impatient, waitUntil } from '../support/wait.ts'
import { assertSound, History, type Intent, judgeOn, summarise } from './history.ts'
import { startServer } from './instance.ts'
import { attempt, resolveUnknowns, runWorkers } from './payers.ts'
import { type Decision, Wire } from './wire.ts'

const payers = 16
const unknown = 'The outcome is unknown. Read before you repeat, or repeat with the same Idempotency-Key.'

test('F4: a connection to PostgreSQL that is cut around COMMIT leaves one payment for each key: the client gets 503 with the advice to repeat with the same key, which gets the result', {
  skip: postgres.skip,
}, async t => {
  await using database = await postgres.create()
  await using proxy = await Wire.to(new URL(database.location))
  await using instance = await startServer(behind(proxy, database))
  const history = new History()
  const cuts = inForm(12, 300)
  for (const moment of ['cut before', 'cut after', 'cut long before'] as const) {
    const done = cutSomeCommits(proxy, moment, cuts)
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
      if (moment === 'cut after') await waitUntil(async () => (await engine.read(keyOf(intent))).length > 0)
      // Whether it was paid or not, the repeated request gets the right answer.
      assert.equal((await attempt(history, instance.url, intent))?.status, moment === 'cut after' ? 200 : 201)
    }
  }
  const verdict = await judgeOn(database, history)
  t.diagnostic(`${3 * cuts} commits cut, and some with what followed: ${summarise(verdict)}`)
  assert.equal(verdict.unknowns, 0) // the server always answers, even without its database
  assertSound(verdict)
  assert.deepEqual([...instance.faults, ...hasty.faults], [])
})

function keyOf({ key }: Intent) {
  return sql`select id from idempotency_keys where key = ${key}`
}

function behind(proxy: Wire, { location }: TestDatabase) {
  return { kind: 'postgres', location: proxy.through(location) } as const
}

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

function isCommit(data: Buffer): boolean {
  return data.includes('commit\0')
}
