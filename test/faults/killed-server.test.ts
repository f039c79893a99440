import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { postgres, sqlite, type TestDatabase } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { assertSound, History, judgeOn, summarise, type Verdict } from './history.ts'
import { Instance, type Server, startServer } from './instance.ts'
import { attempt, payUntilAnswered, repeatLatest, resolveUnknowns, runWorkers } from './payers.ts'

const payers = 64

test('F1: a server on SQLite that is killed while 64 clients pay loses no acknowledged payment, makes none twice, and becomes ready again', async t => {
  await using parts = new AsyncDisposableStack()
  const history = new History()
  const database = parts.use(await sqlite.create())
  let instance = parts.use(await Instance.start(database))
  const rounds = inForm(1, 30)
  const readyMs: number[] = []
  let verdict: Verdict | undefined
  for (let round = 0; round < rounds; round++) {
    await payUntilKilled(instance, history)
    instance = parts.use(await Instance.start(database))
    readyMs.push(instance.readyMs)
    assertIntact(database)
    await resolveUnknowns(history, instance.url)
    await repeatLatest(history, instance.url, payers)
    verdict = await judgeOn(database, history)
    assertSound(verdict)
    assert.deepEqual(instance.faults, [])
  }
  assert.ok(verdict !== undefined && verdict.acknowledged >= rounds * 100 && verdict.unknowns >= rounds)
  const slowest = Math.max(...readyMs)
  t.diagnostic(`${rounds} kills: ${summarise(verdict)}; the slowest restart was ready after ${Math.round(slowest)} ms`)
  if (inForm(false, true)) assert.ok(slowest < 2_000, `ready after ${slowest} ms`) // only on an idle machine
})

test('F2: one of two servers on PostgreSQL that is killed does not affect its clients: the other server answers them with the results of their payments', {
  skip: postgres.skip,
}, async t => {
  const history = new History()
  await using database = await postgres.create()
  await using other = await startServer(database)
  const rounds = inForm(1, 10)
  for (let round = 0; round < rounds; round++) await killOneOfTwo(database, other, history)
  await repeatLatest(history, other.url, payers)
  const verdict = await judgeOn(database, history)
  t.diagnostic(`${rounds} kills: ${summarise(verdict)}`)
  assert.ok(verdict.unknowns >= rounds)
  assert.equal(verdict.unavailable, 0)
  assert.deepEqual(other.faults, [])
  assertSound(verdict)
})

/** Every payer continues until the server ends, and loses the answer to its last request. */
async function payUntilKilled(instance: Instance, history: History): Promise<void> {
  const enough = history.acknowledged + 100 + Math.floor(Math.random() * 300)
  await runWorkers(payers, async () => {
    while ((await attempt(history, instance.url, history.intend())) !== undefined) {
      if (history.acknowledged >= enough) instance.kill()
    }
  })
}

/** Half of the payers use the server that is killed; without an answer, they repeat the request at the other one. */
async function killOneOfTwo(database: TestDatabase, other: Server, history: History): Promise<void> {
  await using instance = await Instance.start(database)
  const toKill = history.acknowledged + 100 + Math.floor(Math.random() * 200)
  const toEnd = toKill + 150
  await runWorkers(payers, async worker => {
    while (history.acknowledged < toEnd) {
      const intent = history.intend()
      const url = worker % 2 === 0 && instance.runs ? instance.url : other.url
      if ((await attempt(history, url, intent)) === undefined) await payUntilAnswered(history, other.url, intent)
      if (history.acknowledged >= toKill) instance.kill()
    }
  })
}

function assertIntact({ location }: TestDatabase): void {
  const file = new DatabaseSync(location)
  assert.deepEqual({ ...file.prepare('pragma integrity_check').get() }, { integrity_check: 'ok' })
  file.close()
}
