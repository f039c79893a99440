import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { postgres, postgresAt } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { PostgresServer } from '../support/postgres.ts'
import { generous, impatient, waitUntil, within } from '../support/wait.ts'
import { assertSound, History, judgeOn, summarise } from './history.ts'
import { Instance, startServer } from './instance.ts'
import { resolveUnknowns, startPaying } from './payers.ts'

test('F3: PostgreSQL that is killed and restarted while clients pay loses no acknowledged payment, and meanwhile the server answers 503 and then recovers without a restart', {
  skip: postgres.skip,
}, async t => {
  await using server = await PostgresServer.start()
  const database = postgresAt(server.url)
  // The long form measures the times that operators see.
  const env = { ...generous, ...inForm({}, { DATABASE_TIMEOUT_MS: '1200' }) }
  await using instance = await startServer(database, env)
  const history = new History()
  const kills = inForm(['SIGQUIT'] as const, ['SIGQUIT', 'SIGINT', 'SIGQUIT', 'SIGINT', 'SIGQUIT', 'SIGQUIT'] as const)
  const refusals: { readonly status: number | undefined; readonly ms: number }[] = []
  const recoveries: number[] = []
  {
    await using _paying = startPaying(history, instance.url, (intent, answer, ms) => {
      if (!history.isSettled(intent)) refusals.push({ status: answer?.status, ms })
    })
    for (const signal of kills) {
      await history.more(200)
      await server.end(signal)
      const enough = refusals.length + 16
      await waitUntil(() => refusals.length >= enough)
      await server.resume()
      const resumed = performance.now()
      await history.more(1)
      recoveries.push(performance.now() - resumed)
    }
  }
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
