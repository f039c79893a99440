import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import type pg from 'pg'
import { createEventLog } from '../../src/storage/entities/outbox.ts'
import { migratePostgres } from '../../src/storage/postgres/migrate.ts'
import { sql } from '../../src/storage/sql.ts'
import { catalogue } from '../../src/storage/verbs.ts'
import { execute } from '../faults/execute.ts'
import { Wire } from '../faults/wire.ts'
import { type EngineKind, engineKinds, postgres, type TestDatabase } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { runDuet } from '../support/process.ts'
import { migrationsOf } from '../support/templates.ts'
import { waitUntil } from '../support/wait.ts'
import { connectTo } from './transaction.ts'

const fixture = readFileSync(join(import.meta.dirname, 'fixtures', 'data-of-0.1.0.sql'), 'utf8')

/** More users and posts than are mended together. Only the last hundred posts have comments. */
const numbers = 'with recursive numbers (n) as (values (1) union all select n + 1 from numbers where n < 1100)'
const many = `
  ${numbers} insert into users (id, name, email, token_mark, created_at)
    select n + 3, 'U', 'U' || n || '@Example.com', 'mark', '2026-01-31T12:00:00.000Z' from numbers;
  ${numbers} insert into posts (author_id, title, content) select 3, 'T', 'C' from numbers;
  insert into comments (post_id, author_id, text, created_at)
    select id, 3, 'Text', '2026-01-31T12:00:00.000Z' from posts where id > 1002`

/** A database with the schema of 0.1.0. */
async function schemaOf010(kind: EngineKind): Promise<TestDatabase> {
  const database = await kind.createEmpty()
  await database.migrate(migrationsOf(kind.kind).slice(0, 2))
  return database
}

for (const kind of engineKinds) {
  describe(`A database of 0.1.0 on ${kind.name}`, { skip: kind.skip }, () => {
    it('is upgraded with all its data, and new columns are filled', async () => {
      await using database = await schemaOf010(kind)
      await execute(database, fixture + many)
      await database.migrate()
      await using engine = database.open(catalogue)
      assert.deepEqual(await engine.read(sql`select id, email_key from users order by id limit 3`), [
        [1, 'ada@example.com'],
        [2, 'élodie@example.com'],
        [3, 'bob@example.com'],
      ])
      assert.deepEqual(await engine.read(sql`select id, comment_count, likes from posts order by id limit 2`), [
        [1, 2, 3],
        [2, 0, 0],
      ])
      assert.deepEqual(await engine.read(sql`select name_key from users where id = 2`), [['élodie']])
      assert.deepEqual(await engine.read(sql`select count(*) from users where email_key is null or name_key is null`), [
        [0],
      ])
      assert.deepEqual(await engine.read(sql`select sum(comment_count) from posts where id > 1002`), [[100]])
      const position = kind.kind === 'sqlite' ? 'id' : 'position'
      const events = { text: `select ${position}, kind, comment_id from outbox order by id`, values: [] }
      assert.deepEqual(await engine.read(events), [
        [1, 'post-added', null],
        [2, 'comment-added', 1],
        [3, 'comment-added', 2],
      ])
      assert.deepEqual(await engine.read(sql`select amount_cents, payer_id from payments`), [[1200, 3]])
    })

    it('goes on with the positions of its events, even if none is left', async () => {
      await using database = await schemaOf010(kind)
      await execute(database, fixture)
      await database.migrate(migrationsOf(kind.kind).slice(0, 5)) // events have positions
      await execute(database, 'delete from outbox')
      await database.migrate()
      await using engine = database.open(catalogue)
      assert.equal((await createEventLog(engine).end()).position, 3)
    })

    it('has what an earlier version left wrong mended by duet repair, and nothing else', async () => {
      await using database = await kind.create()
      await execute(
        database,
        `${fixture + many}; update posts set comment_count = 7; update users set email_key = 'x', name_key = 'x' where id in (2, 1103)`,
      )
      const repair = async () => {
        const { stdout } = await runDuet(['repair'], { env: { DATABASE_URL: database.url } })
        return [...stdout.matchAll(/: (\d+)/g)].map(([, rows]) => Number(rows))
      }
      const users = kind.kind === 'sqlite' ? 1103 : 2 // on PostgreSQL, triggers have made the keys of the others
      assert.deepEqual(await repair(), [1102, users, users])
      assert.deepEqual(await repair(), [0, 0, 0])
      await using engine = database.open(catalogue)
      assert.deepEqual(await engine.read(sql`select comment_count from posts order by id limit 2`), [[2], [0]])
      assert.deepEqual(await engine.read(sql`select email_key from users where id = 2`), [['élodie@example.com']])
    })
  })
}

describe('A database of 0.1.0 on PostgreSQL that instances of 0.1.0 use', { skip: postgres.skip }, () => {
  const sizes = inForm({ users: 1_500, posts: 750, comments: 1_500 }, { users: 1e6, posts: 5e5, comments: 1e6 })

  it('is upgraded beside them and beside a backup, without an error, after an interruption too', async t => {
    await using database = await schemaOf010(postgres)
    await execute(database, planted(sizes))
    await using parts = new AsyncDisposableStack()
    const connect = async () => parts.use(await connectTo(database.location))
    const load = startOldInstances(await Promise.all(Array.from({ length: 4 }, connect)), sizes.posts)
    const [watcher, backup, older] = [await connect(), await connect(), await connect()]
    // As pg_dump does: its snapshot stays, and so do the locks of the tables that it has read.
    await backup.query('begin isolation level repeatable read; select 1 from posts limit 1')
    await older.query('begin isolation level repeatable read; select 1 from users limit 1')
    const told: string[] = []
    const migrate = () => migratePostgres(database.location, migrationsOf('postgres'), line => void told.push(line))

    const interrupted = assert.rejects(migrate())
    await waitUntil(() => told.length > 0)
    assert.match(told[0] ?? '', /^Migration 3 \(comment-counts\) waits/)
    await load.more(200)
    await backup.query('commit')
    await waitUntil(async () => (await watcher.query(endOf('create index concurrently'))).rowCount === 1)
    await interrupted
    await older.query('commit')
    const dump = inForm(async () => {}, pgDump)(database.location)
    const started = performance.now()
    assert.deepEqual(await migrate(), migrationsOf('postgres').slice(2))
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    await dump
    await load.more(200)
    const { done, slowestMs } = await load.stop()
    t.diagnostic(
      `${done} operations beside it, the slowest took ${Math.round(slowestMs)} ms; ${seconds} s; ${told.join(' ')}`,
    )

    await assertMended(database)
    await using engine = database.open(catalogue)
    assert.deepEqual(await engine.read(sql`select indexrelid::regclass::text from pg_index where not indisvalid`), [])
  })

  it('has its rows filled from where that was interrupted among them', async () => {
    await using database = await schemaOf010(postgres)
    await execute(database, planted({ users: 3_000, posts: 10, comments: 10 }))
    await using proxy = await Wire.to(new URL(database.location))
    let portions = 0
    proxy.fromClient = data => (data.includes('email_key from') && [1, 3].includes(++portions) ? 'cut before' : 'pass')
    const migrate = () => migratePostgres(proxy.through(database.location), migrationsOf('postgres'))
    for (let cuts = 0; cuts < 2; cuts++) await assert.rejects(migrate()) // before the first portion, and after it
    await migrate()
    assert.equal(portions, 6, 'it went on after the first of three portions, to the end')
    await assertMended(database)
  })
})

async function assertMended(database: TestDatabase): Promise<void> {
  await using engine = database.open(catalogue)
  for (const mend of ['mendCommentCounts', 'mendEmailKeys', 'mendNameKeys'] as const) {
    let after = 0
    do {
      const { rows, last } = await engine.write(mend, after)
      assert.equal(rows, 0, mend)
      after = last
    } while (after > 0)
  }
}

async function pgDump(url: string): Promise<void> {
  await promisify(execFile)('pg_dump', ['--file=/dev/null', url])
}

/** Ends the connection that runs such a statement, as a lost connection would. */
function endOf(statement: string): string {
  return `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and query like '%${statement}%' and wait_event = 'virtualxid'`
}

function planted({ users, posts, comments }: Readonly<Record<'users' | 'posts' | 'comments', number>>): string {
  const at = "'2026-01-31T12:00:00.000Z'"
  return `insert into users (id, name, email, token_mark, created_at)
            select i, case when i % 100 = 0 then 'É' else 'U' end, case when i % 100 = 0 then 'É' else 'U' end || i || '@Example.com', 'mark', ${at}
            from generate_series(1, ${users}) as i;
          insert into posts (author_id, title, content) select i, 'T', 'C' from generate_series(1, ${posts}) as i;
          insert into comments (post_id, author_id, text, created_at)
            select i % ${posts} + 1, i, 'Text', ${at} from generate_series(1, ${comments}) as i;
          insert into outbox (kind, post_id, created_at) select 'post-added', i, ${at} from generate_series(1, 1200) as i`
}

/** Clients that write as 0.1.0 did, without a pause. The first error of any of them is thrown by `more` or `stop`. */
function startOldInstances(clients: readonly pg.Client[], posts: number) {
  const state = { done: 0, slowestMs: 0, isOver: false }
  const work = async (client: pg.Client, index: number) => {
    for (let turn = 1; !state.isOver; turn++) {
      const [post, user] = [1 + ((turn * 7) % posts), 1 + ((turn * 4 + index) % posts)]
      const started = performance.now()
      for (const [text, values] of operationsOf010(post, user, `${turn}-${index}`)[turn % 4] ?? [])
        await client.query(text, [...values])
      state.slowestMs = Math.max(state.slowestMs, performance.now() - started)
      state.done++
    }
  }
  const ends = Promise.all(clients.map(work))
  ends.catch(() => {})
  return {
    /** Waits until so many further operations are done. */
    async more(operations: number): Promise<void> {
      const wanted = state.done + operations
      await Promise.race([ends, waitUntil(() => state.done >= wanted)])
    },
    async stop() {
      state.isOver = true
      await ends
      return state
    },
  }
}

type Sent = readonly [text: string, values: readonly (string | number)[]]

function operationsOf010(post: number, user: number, name: string): readonly (readonly Sent[])[] {
  const added = `with added as (insert into comments (post_id, author_id, text, created_at)
                   select posts.id, users.id, 'New', now_plus(0) from posts, users where posts.id = $1 and users.id = $2
                   returning id)
                 insert into outbox (kind, post_id, comment_id, created_at)
                 select 'comment-added', $1, id, now_plus(0) from added`
  const removed = 'delete from comments where id = (select max(id) from comments where author_id = $1)'
  const joined = `with taken as (update counters set next = next + 1 where name = 'users' returning next - 1 as id)
                  insert into users (id, name, email, token_mark, created_at)
                  select id + 10000000, $1, $1, 'mark', now_plus(0) from taken`
  return [
    [[added, [post, user]]],
    [[removed, [user]]],
    [[joined, [`New-${name}@Example.com`]]],
    [
      ['update users set name = $2, email = $2 where id = $1', [user, `Changed-${name}@Example.com`]],
      ['select id, name, email from users order by id limit 20', []],
      ['select id, title from posts order by id desc limit 20', []],
    ],
  ]
}
