import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { type Event, type EventLog, isAfter, type Position } from '../../src/core/events.ts'
import { profileOf } from '../../src/core/users/user.ts'
import type { Engine } from '../../src/storage/engine.ts'
import { createEventLog } from '../../src/storage/entities/outbox.ts'
import { createStore } from '../../src/storage/store.ts'
import { catalogue, type verbs } from '../../src/storage/verbs.ts'
import { execute } from '../faults/execute.ts'
import { engineKinds, postgres, type TestDatabase } from '../support/engines.ts'
import { rowsOf } from '../support/graphql.ts'
import { newPostgresDatabase } from '../support/templates.ts'
import { waitUntil } from '../support/wait.ts'

/** Inserts an event of this age, in the SQL of the engine. */
function insertOf(kind: TestDatabase['kind'], postId: number, ageSeconds = 0): string {
  const instant =
    kind === 'sqlite'
      ? `strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-${ageSeconds} seconds')`
      : `now_plus(-${ageSeconds}::bigint)`
  return `insert into outbox (kind, post_id, created_at) values ('post-added', ${postId}, ${instant})`
}

/** All events after a position, read in batches as soon as they are visible. */
async function allAfter(log: EventLog, position: Position, count: number): Promise<readonly Event[]> {
  const events: Event[] = []
  await waitUntil(async () => {
    const found = await log.after(events.at(-1)?.position ?? position)
    events.push(...found.events)
    return events.length >= count
  })
  return events
}

function postsIn(events: readonly Event[]): readonly number[] {
  return events.map(event => (event.kind === 'user-revoked' ? 0 : event.postId))
}

for (const kind of engineKinds) {
  describe(`The log of events on ${kind.name}`, { skip: kind.skip }, () => {
    let database: TestDatabase
    let engine: Engine<typeof verbs>
    let log: EventLog
    before(async () => {
      database = await kind.create()
      await database.migrate()
      engine = database.open(catalogue)
      log = createEventLog(engine)
    })
    after(async () => {
      await engine[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    })

    const newUser = async (email: string): Promise<number> => {
      const values = { name: 'Ann', email, ...profileOf(() => null), password: null, tokenVersion: 'version' }
      const created = await engine.write('createUser', values)
      return typeof created === 'string' ? assert.fail() : created.id
    }

    it('returns the events that verbs write, with their ids and their time', async () => {
      const userId = await newUser('ann@example.com')
      const actor = { kind: 'user', id: userId, role: 'member', tokenVersion: 'version' } as const
      const from = await log.end()
      const earliest = Date.now()
      const { posts } = createStore(engine)
      const selection = { fields: [{ kind: 'one', key: 'x', name: 'post', id: 0, fields: [] }] } as const
      const show = { selection, values: [null], id: 0 } as const
      await posts.change(actor, [{ kind: 'create post', title: 'T', content: 'C', show }])
      const [[postId] = []] = await rowsOf(engine, 'select max(id) from posts')
      const id = Number(postId)
      const shown = {
        selection: { fields: [{ ...selection.fields[0], name: 'comment' }] },
        values: [null],
        id: 0,
      } as const
      await posts.change(actor, [{ kind: 'add comment', postId: id, text: 'x', show: shown }])
      await posts.change(actor, [{ kind: 'delete post', id, reach: 'everyone' }])
      await engine.write('setRole', { id: userId }, 'admin', 'new version')
      const events = await allAfter(log, from, 4)
      const withoutPositions = events.map(({ position, at, ...happening }) => {
        assert.ok(position.id > 0 && position.transaction > 0)
        assert.ok(at >= earliest - 1_000 && at <= Date.now() + 1_000)
        return Object.fromEntries(Object.entries(happening).filter(([, value]) => value !== null))
      })
      assert.deepEqual(
        withoutPositions.map(({ commentId, ...rest }) => rest),
        [
          { kind: 'post-added', postId: id },
          { kind: 'comment-added', postId: id },
          { kind: 'post-deleted', postId: id },
          { kind: 'user-revoked', userId },
        ],
      )
      assert.ok(Number(withoutPositions[1]?.commentId) > 0)
    })

    it('returns each event once, in order, in batches, and tells whether more follow', async () => {
      const from = await log.end()
      const inserts = Array.from({ length: 1100 }, (_, index) => insertOf(database.kind, index + 1))
      await execute(database, `begin; ${inserts.join(';')}; commit`)
      await waitUntil(async () => (await log.after(from)).events.length > 0)
      let position = from
      const portions: number[] = []
      const posts: number[] = []
      for (let more = true; more; ) {
        const found = await log.after(position)
        portions.push(found.events.length)
        posts.push(...postsIn(found.events))
        position = found.events.at(-1)?.position ?? position
        more = found.more && found.events.length > 0
      }
      assert.deepEqual(portions, [500, 500, 100])
      assert.deepEqual(
        posts,
        inserts.map((_, index) => index + 1),
      )
      assert.deepEqual((await log.after(position)).events, [])
    })

    it('existing events are not after a snapshot, and later events are', async () => {
      const from = await log.end()
      await execute(database, insertOf(database.kind, 1))
      await allAfter(log, from, 1)
      const moment = await log.now()
      await execute(database, insertOf(database.kind, 2))
      const events = await allAfter(log, from, 2)
      assert.deepEqual(postsIn(events), [1, 2])
      assert.deepEqual(
        events.map(event => isAfter(event, moment)),
        [false, true],
      )
    })

    it('deletes events older than an hour in batches, and keeps the others', async () => {
      await execute(database, 'delete from outbox')
      const old = Array.from({ length: 700 }, (_, index) => insertOf(database.kind, index + 1, 3_700))
      const live = [3_500, 60, 0].map((age, index) => insertOf(database.kind, 10_000 + index, age))
      await execute(database, `begin; ${[...old, ...live].join(';')}; commit`)
      assert.deepEqual([await log.purge(), await log.purge(), await log.purge()], [500, 200, 0])
      const left = await rowsOf(engine, 'select post_id from outbox order by id')
      assert.deepEqual(left.flat().map(Number), [10_000, 10_001, 10_002])
    })

    it('an empty log after a purge continues at its position', async () => {
      const from = await log.end()
      await execute(database, insertOf(database.kind, 1))
      const [first] = await allAfter(log, from, 1)
      await execute(database, 'delete from outbox')
      const now = await log.end()
      assert.ok(first !== undefined && (await log.after(now)).events.length === 0)
      await execute(database, insertOf(database.kind, 2))
      assert.deepEqual(postsIn(await allAfter(log, first.position, 1)), [2])
      assert.deepEqual(postsIn(await allAfter(log, now, 1)), [2])
    })
  })
}

describe('The order of events on PostgreSQL', { skip: postgres.skip }, () => {
  let database: TestDatabase
  let engine: Engine<typeof verbs>
  let log: EventLog
  const clients: pg.Client[] = []
  before(async () => {
    database = await postgres.create()
    await database.migrate()
    engine = database.open(catalogue)
    log = createEventLog(engine)
    for (let n = 0; n < 3; n++) {
      const client = new pg.Client({ connectionString: database.location })
      await client.connect()
      clients.push(client)
    }
  })
  after(async () => {
    for (const client of clients) await client.end()
    await engine[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })

  const client = (index: number) => clients[index] ?? assert.fail()

  it('an event of a late commit comes before events of transactions that began later, which wait for it', async () => {
    const from = await log.end()
    await client(0).query('begin')
    await client(0).query(insertOf('postgres', 1))
    await client(1).query('begin')
    await client(1).query(insertOf('postgres', 2))
    await client(2).query(insertOf('postgres', 3))
    const held = await log.after(from)
    assert.deepEqual([held.events, held.more], [[], true])
    await client(1).query('commit')
    assert.deepEqual((await log.after(from)).events, [])
    await client(0).query('commit')
    assert.deepEqual(postsIn(await allAfter(log, from, 3)), [1, 2, 3])
  })

  it('running transactions are after a snapshot and ended ones are not, whatever their numbers', async () => {
    const from = await log.end()
    await client(0).query('begin')
    await client(0).query(insertOf('postgres', 1))
    await client(1).query(insertOf('postgres', 2))
    const moment = await log.now()
    await client(2).query(insertOf('postgres', 3))
    await client(0).query('commit')
    const events = await allAfter(log, from, 3)
    assert.deepEqual(postsIn(events), [1, 2, 3])
    assert.deepEqual(
      events.map(event => isAfter(event, moment)),
      [true, false, true],
    )
  })

  it('a position that no transaction has reached yet shows that events were lost, and no other position does', async () => {
    const { to } = await log.now()
    assert.equal((await log.after({ transaction: to + 1000, id: 1 })).lost, true)
    await client(0).query(insertOf('postgres', 1))
    const [event] = await allAfter(log, { transaction: to, id: 0 }, 1)
    for (const position of [{ transaction: to, id: 0 }, event?.position]) {
      assert.ok(position !== undefined)
      assert.equal((await log.after(position)).lost, undefined)
    }
  })

  it('a rolled back transaction leaves a gap that delays nothing', async () => {
    const from = await log.end()
    await client(0).query('begin')
    await client(0).query(insertOf('postgres', 1))
    await client(1).query(insertOf('postgres', 2))
    await client(0).query('rollback')
    assert.deepEqual(postsIn(await allAfter(log, from, 1)), [2])
  })

  it('a transaction of the service that has its number but no event yet holds back the events of later ones', async () => {
    const from = await log.end()
    await beginLikeAVerb(client(0))
    await client(1).query(insertOf('postgres', 2))
    const held = await log.after(from)
    assert.deepEqual([held.events, held.more, typeof held.heldSince], [[], true, 'number'])
    await client(0).query(insertOf('postgres', 1))
    await client(0).query('commit')
    const events = await allAfter(log, from, 2)
    assert.deepEqual(postsIn(events), [1, 2])
    const { more, heldSince } = await log.after(events.at(-1)?.position ?? assert.fail())
    assert.deepEqual([more, heldSince], [false, undefined])
  })

  it('a transaction that has locked the outbox but has no number yet does not cause a later event to be read before an earlier one', async () => {
    const from = await log.end()
    await client(2).query('begin; select pg_current_xact_id()')
    await client(0).query('begin; lock table outbox in row exclusive mode')
    await client(1).query(insertOf('postgres', 1))
    // The transaction may already have a number that the lock table does not show yet. So no event is returned.
    const found = await log.after(from)
    assert.deepEqual([found.events, found.more], [[], true])
    await client(0).query(insertOf('postgres', 2))
    await client(0).query('commit')
    assert.deepEqual(postsIn(await allAfter(log, from, 2)), [1, 2])
    await client(2).query('rollback')
  })

  it('an open transaction of another program, in this database or another, holds back nothing', async () => {
    const elsewhere = new pg.Client({ connectionString: await newPostgresDatabase('nothing') })
    await elsewhere.connect()
    await elsewhere.query('begin; create table t (x int); insert into t values (1)')
    await client(0).query('begin; update counters set next = next')
    await client(1).query('begin isolation level repeatable read; select * from outbox')
    const from = await log.end()
    await execute(database, insertOf('postgres', 1))
    assert.deepEqual(postsIn((await log.after(from)).events), [1])
    for (const each of [client(0), client(1), elsewhere]) await each.query('rollback')
    await elsewhere.end()
  })

  it('old events are not purged while an earlier one may still appear', async () => {
    await execute(database, 'delete from outbox')
    await beginLikeAVerb(client(0))
    await client(1).query(insertOf('postgres', 1, 4_000))
    assert.equal(await log.purge(), 0)
    await client(0).query('rollback')
    assert.equal(await log.purge(), 1)
  })

  it('transaction numbers of another server, from a restored backup, hold back nothing and are purged', async () => {
    await execute(database, 'delete from outbox')
    await client(0).query(
      `insert into outbox (transaction_id, kind, post_id, created_at)
       values ('9000000000'::xid8, 'post-added', 7, now_plus(-4000))`,
    )
    const from = await log.end()
    assert.deepEqual(await log.after(from), { events: [], more: false, heldSince: undefined })
    assert.equal(await log.purge(), 1)
  })

  it('readers see every event once and in one order, while writers begin, write and end in any order', async () => {
    const writers = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const writer = new pg.Client({ connectionString: database.location })
        await writer.connect()
        return writer
      }),
    )
    const from = await log.end()
    const written = new Set<number>()
    let next = 100
    let running = writers.length
    const write = async (writer: pg.Client, random: () => number) => {
      for (let round = 0; round < 40; round++) {
        await beginLikeAVerb(writer)
        const ids = Array.from({ length: 1 + Math.floor(random() * 3) }, () => next++)
        for (const id of ids) await writer.query(insertOf('postgres', id))
        const keeps = random() < 0.9
        await writer.query(keeps ? 'commit' : 'rollback')
        if (keeps) for (const id of ids) written.add(id)
      }
      running--
    }
    const read = async () => {
      const events: Event[] = []
      for (let done = false; !done; ) {
        done = running === 0
        const found = await log.after(events.at(-1)?.position ?? from)
        events.push(...found.events)
        if (found.more || found.events.length > 0) done = false
      }
      return postsIn(events)
    }
    const [one, other] = await Promise.all([
      read(),
      read(),
      ...writers.map((writer, seed) => write(writer, randomFrom(seed))),
    ])
    for (const writer of writers) await writer.end()
    assert.deepEqual([...one].sort(ascending), [...written].sort(ascending))
    assert.deepEqual(other, one)
  })
})

const ascending = (one: number, other: number) => one - other

/** Like `PostgresSession.begin`: first the lock, then a statement that assigns the number. */
async function beginLikeAVerb(client: pg.Client): Promise<void> {
  await client.query('begin; lock table outbox in row exclusive mode; select pg_current_xact_id()')
}

function randomFrom(seed: number): () => number {
  let state = seed + 1
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}
