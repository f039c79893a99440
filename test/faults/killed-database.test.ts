import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import pg from 'pg'
import { postgres, postgresAt } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { PostgresServer } from '../support/postgres.ts'
import { shared } from '../support/shared.ts'
import { generous, impatient, waitUntil, within } from '../support/wait.ts'
import { assertSound, History, summarise } from './history.ts'
import { Instance, type Server, startServer } from './instance.ts'
import { judgeOn } from './judgement.ts'
import { attempt, resolveUnknowns, runWorkers } from './payers.ts'

const payers = 16

/** The long form measures the times that operators see. */
const defaults = { ...generous, DATABASE_TIMEOUT_MS: '1200' }

describe('F3: PostgreSQL that is killed and restarted while clients pay', { skip: postgres.skip }, () => {
  const server = shared(() => PostgresServer.start())

  it('loses no acknowledged payment, and meanwhile the server answers 503 and then recovers without a restart', async t => {
    const database = postgresAt(server.url)
    await using instance = await startServer(database, inForm<Readonly<Record<string, string>>>(generous, defaults))
    const history = new History()
    const kills: readonly Ending[] = inForm(
      ['SIGQUIT'],
      ['SIGQUIT', 'SIGINT', 'SIGQUIT', 'SIGINT', 'SIGQUIT', 'SIGQUIT'],
    )
    const { refusals, recoveries } = await payThrough(kills, server, instance, history)
    await resolveUnknowns(history, instance.url)
    const verdict = await judgeOn(database, history)
    const [slowest, recovery] = [Math.max(...refusals.map(({ ms }) => ms)), Math.max(...recoveries)]
    t.diagnostic(
      `${kills.length} kills: ${summarise(verdict)}; the slowest refusal came after ${Math.round(slowest)} ms, ` +
        `the first payment at most ${Math.round(recovery)} ms after the restart`,
    )
    assertSound(verdict)
    assert.deepEqual(instance.faults, [])
    assert.deepEqual([...new Set(refusals.map(({ status }) => status))], [503])
    if (inForm(true, false)) return
    // Only on an idle machine.
    assert.ok(slowest < 2_000, `a refusal took ${slowest} ms`)
    assert.ok(recovery < 5_000, `it recovered after ${recovery} ms`)
  })
})

test('a server whose PostgreSQL hangs still stops at SIGTERM, with code 0', { skip: postgres.skip }, async () => {
  await using server = await PostgresServer.start()
  await using instance = await Instance.start(postgresAt(server.url), impatient)
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const { rows } = await client.query(`select pid from pg_stat_activity where application_name like 'duet%'`)
  await client.end()
  assert.ok(rows.length > 1)
  for (const { pid } of rows) process.kill(pid, 'SIGSTOP')
  try {
    await within(instance.stop(), 'the end of the server')
  } finally {
    for (const { pid } of rows) process.kill(pid, 'SIGCONT')
  }
})

type Ending = Parameters<PostgresServer['end']>[0]

interface Passage {
  /** The statuses that clients got instead of success. No status means no answer. */
  readonly refusals: { readonly status: number | undefined; readonly ms: number }[]
  /** Milliseconds from each restart to the next payment. */
  readonly recoveries: number[]
}

/** Sends payments without a pause while the database is killed and restarted. */
async function payThrough(
  kills: readonly Ending[],
  server: PostgresServer,
  { url }: Server,
  history: History,
): Promise<Passage> {
  const passage: Passage = { refusals: [], recoveries: [] }
  let going = true
  const paying = runWorkers(payers, async () => {
    for (let intent = history.intend(); going; ) {
      const started = performance.now()
      const answer = await attempt(history, url, intent)
      if (history.isSettled(intent)) intent = history.intend()
      else passage.refusals.push({ status: answer?.status, ms: performance.now() - started })
    }
  })
  try {
    for (const signal of kills) {
      await more(() => history.acknowledged, 200)
      await server.end(signal)
      await more(() => passage.refusals.length, payers)
      await server.resume()
      const resumed = performance.now()
      await more(() => history.acknowledged, 1)
      passage.recoveries.push(performance.now() - resumed)
    }
  } finally {
    going = false
  }
  await paying
  return passage
}

async function more(count: () => number, by: number): Promise<void> {
  const enough = count() + by
  await waitUntil(() => count() >= enough)
}
