import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { it, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { catalogue } from '../../src/storage/verbs.ts'
import { assertLedger } from '../rest/ledger.ts'
import { newPost } from '../subscriptions/posts.ts'
import { type EngineKind, postgres, postgresAt, sqlite, sqliteAt, type TestDatabase } from '../support/engines.ts'
import { temporaryFolder } from '../support/folder.ts'
import { inForm, onlyInFull } from '../support/form.ts'
import { PostgresServer, program } from '../support/postgres.ts'
import { runDuet } from '../support/process.ts'
import { createMember } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'
import { execute } from './execute.ts'
import { History, type Intent } from './history.ts'
import { type Server, startServer } from './instance.ts'
import { attempt, runWorkers, startPaying } from './payers.ts'

const payers = 16
const paymentsBefore = inForm(100, 1_000)
const rounds = inForm(1, 3)

/** Makes a backup of a database that is in use, and restores it to an empty place. */
type Drill = (database: TestDatabase, parts: AsyncDisposableStack) => Promise<TestDatabase>

const backUpSqlite: Drill = async ({ location }, parts) => {
  const path = join(parts.use(temporaryFolder()).path, 'duet.db')
  const { code, stderr } = await runDuet(['backup', path], { env: { DATABASE_URL: `sqlite:${location}` } })
  assert.equal(code, 0, stderr)
  using copy = new DatabaseSync(path)
  assert.deepEqual({ ...copy.prepare('pragma integrity_check').get() }, { integrity_check: 'ok' })
  return sqliteAt(path)
}

/** Runs the commands of docs/operations.md. The other server has had fewer transactions than the first. */
const dumpPostgres: Drill = async ({ location }, parts) => {
  const file = join(parts.use(temporaryFolder()).path, 'duet.dump')
  const other = parts.use(await PostgresServer.start())
  const env = { DATABASE_URL: location, PATH: `${dirname(program('pg_dump'))}:${process.env.PATH}` }
  const { code, stderr } = await runDuet(['backup', file], { env })
  assert.equal(code, 0, stderr)
  const restore = ['--exit-on-error', '--single-transaction', '--no-owner', `--dbname=${other.url}`]
  await promisify(execFile)(program('pg_restore'), [...restore, file])
  return postgresAt(other.url)
}

for (const [kind, skip, drill] of [
  [sqlite, false, backUpSqlite],
  [postgres, postgres.skip || onlyInFull, dumpPostgres],
] as const)
  it(`F10: a backup during payments on ${kind.name}, restored elsewhere, has every payment acknowledged before it began`, {
    skip,
  }, async t => {
    for (let round = 0; round < rounds; round++) await assertRestored(t, kind, drill)
  })

async function assertRestored(t: TestContext, kind: EngineKind, drill: Drill): Promise<void> {
  await using parts = new AsyncDisposableStack()
  const history = new History()
  const ids = new Map<Intent, number>()
  const database = parts.use(await kind.create())
  const used = parts.use(await startServer(database))
  await post(used, 'before the backup')
  if (kind.kind === 'sqlite') await execute(database, 'pragma wal_checkpoint(truncate)')
  let before: readonly Intent[]
  let restored: TestDatabase
  {
    await using _paying = startPaying(history, used.url, (intent, answer) => {
      if (answer?.status === 201) ids.set(intent, JSON.parse(answer.body).id)
    })
    await history.more(paymentsBefore)
    before = [...ids.keys()] // acknowledged before the backup began
    restored = await drill(database, parts)
    await history.more(payers)
  }
  const instance = parts.use(await startServer(restored))

  const again = async (intents: readonly Intent[]) => {
    const answers: { readonly status: number; readonly isSame: boolean }[] = []
    const left = intents.values()
    await runWorkers(payers, async () => {
      for (const intent of left) {
        const { status, body } = (await attempt(history, instance.url, intent)) ?? assert.fail('no answer')
        answers.push({ status, isSame: JSON.parse(body).id === ids.get(intent) })
      }
    })
    return answers
  }
  const kept = await again(before)
  const lost = kept.filter(({ status, isSame }) => status !== 200 || !isSame)
  assert.ok(lost.length === 0, `${lost.length} of ${before.length} payments were lost`)
  // Payments that were made later are repeated too. Then each payment exists once.
  const all = Array.from(history.entries, ([intent]) => intent)
  const later = all.filter(intent => !before.includes(intent))
  const answers = await again(later)
  for (const { status } of answers) assert.ok(status === 200 || status === 201, String(status))
  await using engine = restored.open(catalogue)
  const keys = all.map(({ key }) => key)
  await assertLedger(engine, keys)
  await assertNewEventsOnly(instance)
  assert.deepEqual(instance.faults, [])
  const inBackup = answers.filter(({ status }) => status === 200).length
  t.diagnostic(`${before.length} payments before the backup, all there; of ${later.length} later ones ${inBackup}`)
}

/** Checks that subscribers get the events after the restoration, and none from before. */
async function assertNewEventsOnly(instance: Server): Promise<void> {
  using socket = await SocketClient.connect(instance)
  const subscription = socket.begin('subscription { postAdded { title } }')
  await subscription.listening(title => post(instance, title))
  await post(instance, 'after the restoration')
  assert.deepEqual(await subscription.received(1), [{ postAdded: { title: 'after the restoration' } }])
}

async function post(instance: Server, title: string): Promise<string> {
  using socket = await SocketClient.connect(instance, await createMember(instance))
  await newPost(socket, title)
  return title
}
