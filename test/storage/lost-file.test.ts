import assert from 'node:assert/strict'
import { closeSync, copyFileSync, openSync, renameSync, rmSync, statSync, truncateSync, writeSync } from 'node:fs'
import { describe, test } from 'node:test'
import { type Statement, sql } from '../../src/storage/sql.ts'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import { together } from '../runner/together.ts'
import { startTestAppOn, type TestApp } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { isQuick } from '../support/form.ts'
import { query } from '../support/graphql.ts'
import { ask } from '../support/http.ts'
import { bodyOf, createUser, newKey, pay } from '../support/rest.ts'
import { waitUntil } from '../support/wait.ts'
import { catalogue } from './contract-verbs.ts'

/** Ways to lose the file of a running server. After some of them there is a valid database, but not the same one. */
const losses: Readonly<Record<string, (path: string, other: string) => void>> = {
  removed: path => rmSync(path),
  'replaced by another database': (path, other) => renameSync(other, path),
  'overwritten with another database': (path, other) => copyFileSync(other, path),
  emptied: path => truncateSync(path),
  'cut in half': path => truncateSync(path, Math.floor(statSync(path).size / 8192) * 4096),
  'left without its log': path => rmSync(`${path}-wal`),
  'left without its shared memory': path => rmSync(`${path}-shm`),
}

const chosen = Object.entries(losses).filter((_, at) => !isQuick || at % 2 === 0)

describe('A SQLite file under a running server', () => {
  const it = together(3)

  for (const [at, [what, lose]] of chosen.entries()) {
    it(`that is ${what} makes it refuse payments, reads and readiness from then on, and log the reason once`, async () => {
      await using other = await sqlite.create() // with less data
      await using app = await startTestAppOn(sqlite)
      await createUser(app)
      bodyOf(await pay(app, newKey()), 201)
      lose(app.database.location, other.location)
      // A write notices the loss at once. Without one it is noticed a little later.
      if (at % 2 === 0) await assertRefused(app, await pay(app, newKey()))
      else await waitUntilLost(app)
      for (const path of ['/users/1', '/health/ready']) await assertRefused(app, await ask(app.url + path))
      await assertRefused(app, await pay(app, newKey()))
      await waitUntil(() => linesAboutLoss(app) > 0) // the line of another thread may come after the answer
      assert.equal(linesAboutLoss(app), 1)
    })
  }
})

test('a SQLite file that is damaged in the middle makes the request that reads the damaged part get 503, and later all requests', async () => {
  await using database = await sqlite.create()
  {
    await using engine = database.open(catalogue)
    const post = sql`insert into posts (author_id, title, content) values (1, 'Title', ${'x'.repeat(60_000)})`
    await engine.write('run', [user(1, 'Ann'), ...Array.from({ length: 50 }, () => post)])
  }
  await using app = await startTestAppOn({ ...sqlite, create: async () => database })
  const file = openSync(database.location, 'r+')
  writeSync(file, Buffer.alloc(Math.floor(statSync(database.location).size / 2), 0xa5), 0, undefined, 8192)
  // `file` stays open for now: closing any descriptor of the file would release the locks of this process.
  const asked = await query(app, '{ posts(limit: 50) { content } }')
  assert.equal(asked.status, 503, asked.body)
  await waitUntilLost(app)
  await assertRefused(app, await ask(`${app.url}/health/ready`))
  await assertRefused(app, await pay(app, newKey()))
  await waitUntil(() => linesAboutLoss(app) > 0)
  assert.equal(linesAboutLoss(app), 1)
  closeSync(file)
})

test('a SQLite file that another process uses while a server starts and runs does not count as lost if its WAL is written back or it becomes smaller', async () => {
  await using database = await sqlite.create()
  using reader = new SqliteConnection(database.location, 'read')
  reader.run(sql`select 1 from users`) // so the WAL is not written back at the start
  await using app = await startTestAppOn({ ...sqlite, create: async () => database })
  for (let round = 0; round < 2; round++) {
    await using beside = app.database.open(catalogue)
    const users = Array.from({ length: 8000 }, (_, id) => user(id + 1001, 'x'.repeat(300)))
    await beside.write('run', users)
    await beside.read(sql`select count(*) from users`)
    bodyOf(await pay(app, newKey()), 201)
    await beside.write('run', [sql`delete from users where id > 1000`])
    bodyOf(await pay(app, newKey()), 201)
  }
  assert.equal((await ask(`${app.url}/health/ready`)).status, 200)
  assert.equal(linesAboutLoss(app), 0)
})

function user(id: number, name: string): Statement {
  return sql`insert into users (id, name, email, token_mark, created_at)
             values (${id}, ${name}, ${name}, 'mark', '2026-01-31T12:00:00.000Z')`
}

async function assertRefused(app: TestApp, { status, body }: { status: number; body: string }): Promise<void> {
  assert.equal(status, 503, `${body} ${JSON.stringify(app.logs.at(-1))}`)
  assert.deepEqual(JSON.parse(body), { error: 'Service temporarily unavailable. Try again later.' })
}

const linesAboutLoss = ({ logs }: TestApp): number =>
  logs.filter(({ msg }) => String(msg).startsWith('The database file is lost')).length

/** A read can fail before the loss is noticed, and another one succeed after it. */
async function waitUntilLost(app: TestApp): Promise<void> {
  await waitUntil(() => linesAboutLoss(app) > 0)
  await waitUntil(async () => (await ask(`${app.url}/users/1`)).status === 503)
}
