import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectTo } from '../storage/transaction.ts'
import { postgres, type TestDatabase } from '../support/engines.ts'
import { inForm, onlyOneThread } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { createOrder, createUser } from '../support/rest.ts'
import { metricOf } from '../support/sockets.ts'
import { assertSound, History, type Intent } from './history.ts'
import { Instance } from './instance.ts'
import { attempt, runWorkers } from './payers.ts'

test('F7: five hundred requests with one key whose payment has to wait use one database connection, other requests are served meanwhile, and all of them get the answer', {
  skip: postgres.skip || onlyOneThread,
}, async t => {
  const history = new History()
  await using database = await postgres.create()
  await using instance = await Instance.start(database)
  const user = await createUser(instance)
  const { id } = await createOrder(instance, user.id, [{ name: 'Thing', quantity: 1, price: 500_000 }])
  const slow = history.intend({ orderId: id, cents: 500_000_00 })
  await using lock = await lockOrder(database, id)
  const duplicates = Array.from({ length: 500 }, () => payDespite503(history, instance, slow))
  const others = await serveOthersMeanwhile(instance, history, lock)
  await lock.release()
  const answers = await Promise.all(duplicates)

  t.diagnostic(
    `at most ${lock.most} connection waited; meanwhile ${others.statuses.length} others were answered, ` +
      `the slowest payment after ${Math.round(others.slowest)} ms`,
  )
  assert.equal(lock.most, 1)
  assert.deepEqual([...new Set(others.statuses)].sort(), [200, 201])
  const [paid = '', ...different] = new Set(answers)
  assert.deepEqual([JSON.parse(paid).id, JSON.parse(paid).status, different], [id, 'shipped', []])
  await assertSound(t, database, history)
  assert.deepEqual(instance.faults, [])
})

/** Locks the row of an order in another session, so that its payment has to wait. Counts the waiting sessions. */
async function lockOrder({ location }: TestDatabase, orderId: number) {
  const [holder, watcher] = [await connectTo(location), await connectTo(location)]
  await holder.query(`begin; select id from orders where id = ${orderId} for update`)
  const waiting = `select count(*)::int as waiting from pg_stat_activity
    where application_name = 'duet' and datname = current_database() and wait_event in ('transactionid', 'tuple')`
  const lock = {
    /** The maximum number of connections that waited at once. */
    most: 0,
    look: async () => {
      lock.most = Math.max(lock.most, Number((await watcher.query(waiting)).rows[0].waiting))
    },
    release: () => holder.query('rollback'),
    [Symbol.asyncDispose]: async () => void (await Promise.all([holder.end(), watcher.end()])),
  }
  return lock
}

/** Sends other payments and reads. Ends when enough of them were answered while all duplicates were waiting. */
async function serveOthersMeanwhile(
  { url }: Instance,
  history: History,
  lock: Awaited<ReturnType<typeof lockOrder>>,
): Promise<{ statuses: (number | undefined)[]; slowest: number }> {
  const statuses: (number | undefined)[] = []
  let slowest = 0
  let enough = false
  const serving = runWorkers(4, async () => {
    while (!enough) {
      const started = performance.now()
      const paid = await attempt(history, url, history.intend())
      slowest = Math.max(slowest, performance.now() - started)
      statuses.push(paid?.status, (await ask(url + paid?.headers.get('location'))).status)
    }
  })
  while (lock.most === 0 || (await metricOf({ url }, 'duet_http_requests_in_flight')) < 500) await lock.look()
  for (const upTo = statuses.length + inForm(100, 3000); statuses.length < upTo; ) await lock.look()
  enough = true
  await serving
  return { statuses, slowest }
}

/** The wait is limited: a client that gets 503 sends its request again. */
async function payDespite503(history: History, { url }: Instance, intent: Intent): Promise<string | undefined> {
  for (;;) {
    const answer = await attempt(history, url, intent)
    if (answer?.status !== 503) return answer?.body
  }
}
