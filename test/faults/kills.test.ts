import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { connectTo } from '../storage/transaction.ts'
import { idsIn, newPost } from '../subscriptions/posts.ts'
import { programMissing } from '../support/daemon.ts'
import { postgres, postgresAt, sqlite } from '../support/engines.ts'
import { inForm, onlyInFull } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { PostgresServer } from '../support/postgres.ts'
import { createMember } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'
import { generous, impatient, waitUntil, within } from '../support/wait.ts'
import { assertSound, History, type Verdict } from './history.ts'
import { Instance, startServer } from './instance.ts'
import { attempt, payUntilAnswered, repeatLatest, resolveUnknowns, runWorkers, startPaying } from './payers.ts'
import { isPrimary, startDatabaseProxy } from './proxies.ts'
import { Wire } from './wire.ts'

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
    // Every payer continues until the server ends, and loses the answer to its last request.
    const enough = history.acknowledged + 100 + Math.floor(Math.random() * 300)
    await runWorkers(payers, async () => {
      while ((await attempt(history, instance.url, history.intend())) !== undefined) {
        if (history.acknowledged >= enough) instance.signal('SIGKILL')
      }
    })
    const started = performance.now()
    instance = parts.use(await Instance.start(database))
    readyMs.push(performance.now() - started)
    using file = new DatabaseSync(database.location)
    assert.deepEqual({ ...file.prepare('pragma integrity_check').get() }, { integrity_check: 'ok' })
    await resolveUnknowns(history, instance.url)
    await repeatLatest(history, instance.url, payers)
    verdict = await assertSound(t, database, history)
    assert.deepEqual(instance.faults, [])
  }
  assert.ok(verdict !== undefined && verdict.acknowledged >= rounds * 100 && verdict.unknowns >= rounds)
  const slowest = Math.max(...readyMs)
  t.diagnostic(`the slowest of ${rounds} restarts was ready after ${Math.round(slowest)} ms`)
  if (inForm(false, true)) assert.ok(slowest < 2_000, `ready after ${slowest} ms`) // only on an idle machine
})

test('F2: one of two servers on PostgreSQL that is killed does not affect its clients: the other server answers them with the results of their payments', {
  skip: postgres.skip,
}, async t => {
  const history = new History()
  await using database = await postgres.create()
  await using other = await startServer(database)
  const rounds = inForm(1, 10)
  for (let round = 0; round < rounds; round++) {
    await using instance = await Instance.start(database)
    const toKill = history.acknowledged + 100 + Math.floor(Math.random() * 200)
    // Half of the payers use the server that is killed; without an answer, they repeat the request at the other one.
    await runWorkers(payers, async worker => {
      while (history.acknowledged < toKill + 150) {
        const intent = history.intend()
        const url = worker % 2 === 0 && instance.runs ? instance.url : other.url
        if ((await attempt(history, url, intent)) === undefined) await payUntilAnswered(history, other.url, intent)
        if (history.acknowledged >= toKill) instance.signal('SIGKILL')
      }
    })
  }
  await repeatLatest(history, other.url, payers)
  const { unknowns, unavailable } = await assertSound(t, database, history)
  assert.ok(unknowns >= rounds)
  assert.equal(unavailable, 0)
  assert.deepEqual(other.faults, [])
})

test('F3: PostgreSQL that is killed and restarted while clients pay loses no acknowledged payment, and meanwhile the server answers 503 and then recovers without a restart', {
  skip: postgres.skip,
}, async t => {
  await using server = await PostgresServer.start()
  const database = postgresAt(server.url)
  // The long form measures the times that operators see.
  await using instance = await startServer(database, { ...generous, ...inForm({}, { DATABASE_TIMEOUT_MS: '1200' }) })
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
  const [slowest, recovery] = [Math.max(...refusals.map(({ ms }) => ms)), Math.max(...recoveries)]
  t.diagnostic(
    `${kills.length} kills: the slowest refusal came after ${Math.round(slowest)} ms, ` +
      `the first payment at most ${Math.round(recovery)} ms after the restart`,
  )
  await assertSound(t, database, history)
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
  const client = await connectTo(server.url)
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

const withoutHaproxy = postgres.skip || (programMissing('haproxy') ?? false)

test('a primary of PostgreSQL that is killed under 16 payers, and whose synchronous standby takes over, loses nothing acknowledged and pays nothing twice', {
  skip: withoutHaproxy,
}, async t => {
  for (let round = 0; round < inForm(1, 5); round++) {
    await using parts = new AsyncDisposableStack()
    const { primary, standby, instance } = await startReplicated('synchronous', parts)
    const history = new History()
    let readyMs: number
    {
      await using _paying = startPaying(history, instance.url)
      await history.more(inForm(50, 1000))
      await primary.kill()
      await standby.promote()
      const promoted = performance.now()
      await waitUntil(async () => (await ask(`${instance.url}/health/ready`)).status === 200)
      readyMs = performance.now() - promoted
      await history.more(inForm(50, 100))
    }
    await resolveUnknowns(history, instance.url)
    await assertSound(t, postgresAt(standby.url), history)
    t.diagnostic(`ready ${Math.round(readyMs)} ms after the promotion`)
    assert.deepEqual(instance.faults, [])
    if (inForm(false, true)) assert.ok(readyMs <= 10_000, `ready after ${readyMs} ms`) // only on an idle machine
  }
})

test('a standby that was behind its primary and takes over makes the service close its sockets with 1012, and subscribers that come back get every event', {
  skip: withoutHaproxy || onlyInFull,
}, async () => {
  await using parts = new AsyncDisposableStack()
  const { primary, standby, instance } = await startReplicated('lagging', parts)
  const subscribe = async () => {
    const socket = parts.use(await SocketClient.connect(instance, await createMember(instance)))
    const post = (title: string) => newPost(socket, title)
    const subscription = await socket.begin('subscription { postAdded { id } }').listening(post)
    return { socket, subscription, post }
  }
  const { socket, subscription, post } = await subscribe()
  for (let n = 0; n < 50; n++) await post('will be lost')
  await subscription.received(50)
  await primary.kill()
  await standby.promote()
  assert.equal((await socket.closed).code, 1012)
  const later = await subscribe()
  const ids = [await later.post('one'), await later.post('two')]
  await later.subscription.received(2)
  assert.deepEqual(idsIn(later.subscription), ids)
})

/** A primary and its standby, a proxy to the server that accepts writes, and an instance of the service. */
async function startReplicated(replication: 'synchronous' | 'lagging', parts: AsyncDisposableStack) {
  const settings = { synchronous_standby_names: replication === 'synchronous' ? 'second' : '' }
  const primary = parts.use(await PostgresServer.start(settings))
  const wire = parts.use(await Wire.to(new URL(primary.url)))
  const standby = parts.use(await PostgresServer.startStandby(primary, 'second', String(wire.port)))
  const proxy = await startDatabaseProxy([new URL(primary.url), new URL(standby.url)], parts)
  const address = new URL(primary.url)
  address.port = String(proxy.port)
  await waitUntil(() => isPrimary(address.href)) // the proxy has found the primary
  const env = inForm<Readonly<Record<string, string>>>(generous, { ...generous, DATABASE_TIMEOUT_MS: '1200' })
  const instance = parts.use(await Instance.start(postgresAt(address.href), env))
  if (replication === 'lagging') wire.fromServer = () => 'keep' // from now on no data reaches the standby
  return { primary, standby, instance }
}
