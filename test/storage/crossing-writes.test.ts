import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { startTestAppOn, type TestApp } from '../support/app.ts'
import { postgres } from '../support/engines.ts'
import { ask } from '../support/http.ts'
import { bodyOf, createMember, send, somebody } from '../support/rest.ts'
import { waitUntil } from '../support/wait.ts'

describe('Mutations on PostgreSQL that name the same posts in different orders', { skip: postgres.skip }, () => {
  let app: TestApp
  let token: string
  let posts: readonly string[]
  before(async () => {
    app = await startTestAppOn(postgres, { THREADS: '1', DATABASE_POOL_MAX: '5', RATE_LIMIT_MAX: '0' })
    token = (await createMember(app)).token
    const mutation =
      'mutation { a: createPost(title: "a", content: "a") { id } b: createPost(title: "b", content: "b") { id } }'
    const { a, b } = await answer<{ a: { id: string }; b: { id: string } }>(mutation)
    posts = [a.id, b.id]
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
  })

  async function answer<Data>(query: string): Promise<Data> {
    const response = await send(app, 'POST /graphql', { query }, token)
    return bodyOf<{ data: Data }>(response).data
  }

  it('all succeed, however many of them overlap', async () => {
    const [one, other] = posts
    const like = (first?: string, second?: string) =>
      answer<{ a: { likes: number }; b: { likes: number } }>(
        `mutation { a: likePost(id: ${first}) { likes } b: likePost(id: ${second}) { likes } }`,
      )
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, n) => (n % 2 === 0 ? like(one, other) : like(other, one))),
    )
    const likes = answers.map(({ a, b }, n) => (n % 2 === 0 ? a : b).likes).sort((x, y) => x - y)
    assert.deepEqual(
      likes,
      Array.from({ length: 64 }, (_, n) => (likes[0] ?? 0) + n),
    )
  })
})

describe('Readiness on PostgreSQL', { skip: postgres.skip }, () => {
  it('the service is not ready while reads work but writes do not, and is ready again when writes work', async () => {
    await using app = await startTestAppOn(postgres, {})
    const admin = new pg.Client({ connectionString: app.database.location })
    await admin.connect()
    try {
      const name = new URL(app.database.location).pathname.slice(1)
      const allow = async (value: 'on' | 'off') => {
        await admin.query(`alter database ${name} set default_transaction_read_only = ${value}`)
        await admin.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'duet'",
        )
      }
      const isReady = async () => (await ask(`${app.url}/health/ready`)).status
      await allow('on')
      await waitUntil(async () => (await isReady()) === 503)
      assert.equal((await ask(`${app.url}/users`)).status, 200)
      assert.equal((await send(app, 'POST /users', somebody())).status, 503)
      await admin.query('set default_transaction_read_only = off')
      await allow('off')
      await waitUntil(async () => (await isReady()) === 200)
    } finally {
      await admin.end()
    }
  })
})
