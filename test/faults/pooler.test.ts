import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { planning } from '../../src/storage/postgres/settings.ts'
import { sql } from '../../src/storage/sql.ts'
import { catalogue } from '../../src/storage/verbs.ts'
import { idsIn, newPost } from '../subscriptions/posts.ts'
import { startTestApp } from '../support/app.ts'
import { type Daemon, programMissing } from '../support/daemon.ts'
import { postgres, postgresAt, type TestDatabase } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { createMember } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'
import { execute } from './execute.ts'
import { assertSound, History } from './history.ts'
import { startTwo } from './instance.ts'
import { attempt, resolveUnknowns, runWorkers } from './payers.ts'
import { startPgBouncer } from './proxies.ts'

const behindPooler = { DATABASE_POOLER: 'transaction', LOG_LEVEL: 'warn' } as const
const skip = postgres.skip || (programMissing('pgbouncer') ?? false)

describe('PgBouncer in transaction mode', { skip }, () => {
  const parts = new AsyncDisposableStack()
  let direct: TestDatabase
  let pooler: Daemon
  let pooled: TestDatabase
  before(async () => {
    const empty = parts.use(await postgres.createEmpty())
    const own = new URL(empty.location)
    // It has its own role, because the planner settings below belong to the role.
    own.username = `pooled_${process.pid}`
    await execute(empty, `create role ${own.username} login`)
    await execute(empty, `alter database ${own.pathname.slice(1)} owner to ${own.username}`)
    direct = postgresAt(own.href)
    pooler = parts.use(await startPgBouncer(own))
    own.port = String(pooler.port)
    pooled = postgresAt(own.href)
  })
  after(() => parts.disposeAsync())

  it('passes payments, reads, mutations and events of the other instance, also after its restart', async t => {
    await using own = new AsyncDisposableStack()
    const [one, other] = await startTwo(pooled, own, behindPooler)
    using writer = await SocketClient.connect(one, await createMember(one))
    using reader = await SocketClient.connect(other)
    const write = (text: string) => newPost(writer, text)
    const subscription = await reader.begin('subscription { postAdded { id } }').listening(write)

    const first = await write('first')
    const history = new History()
    for (let round = 0; round < inForm(1, 5); round++) {
      const enough = history.acknowledged + inForm(150, 500)
      const restart = async () => {
        await history.more(inForm(50, 400))
        await pooler.kill()
        await pooler.resume()
      }
      const use = runWorkers(8, async worker => {
        while (history.acknowledged < enough) {
          const { url } = worker % 2 === 0 ? one : other
          await attempt(history, url, history.intend())
          await ask(`${url}/users`)
        }
      })
      await Promise.all([restart(), use])
      await waitUntil(() => write('after the restart').then(Boolean, () => false))
    }
    await resolveUnknowns(history, other.url)
    const posts = await postsFrom(direct, first)
    await subscription.received(posts.length)
    assert.deepEqual(idsIn(subscription), posts)
    await assertSound(t, direct, history)
    for (const instance of [one, other]) {
      assert.deepEqual(instance.faults, [])
      assert.doesNotMatch(instance.output, preparedStatement)
    }
  })

  it('makes the service log the statements that set the planner settings of the role, until they were run', async () => {
    const advice = async () => {
      await using app = await startTestApp({ ...behindPooler, DATABASE_URL: pooled.location, TOKEN_KEYS: tokenKeys })
      return /Reads may be slow\. Run: ([^"]*)/.exec(JSON.stringify(app.logs))?.[1]
    }
    const statements = await advice()
    assert.equal(statements?.split('; ').length, Object.keys(planning).length)
    await execute(direct, String(statements))
    await pooler.kill() // open connections keep their settings
    await pooler.resume()
    assert.equal(await advice(), undefined)
  })
})

const preparedStatement = /prepared statement|PostgreSQL (26000|42P05)/

/** The ids of the posts, starting with this one, in the order of their events. */
async function postsFrom(database: TestDatabase, first: string): Promise<readonly string[]> {
  await using engine = database.open(catalogue)
  const rows = await engine.read(
    sql`select post_id from outbox where kind = 'post-added' and post_id >= ${first} order by position, id`,
  )
  return rows.map(([id]) => String(id))
}
