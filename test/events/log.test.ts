import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import type pg from 'pg'
import {
  type Event,
  type EventContent,
  type EventLog,
  type Place,
  placeFromText,
  placeToText,
  type Topic,
} from '../../src/core/events.ts'
import type { Engine } from '../../src/storage/engine.ts'
import { createEventLog } from '../../src/storage/entities/outbox.ts'
import { planning } from '../../src/storage/postgres/settings.ts'
import type { Statement } from '../../src/storage/sql.ts'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import { catalogue, type verbs } from '../../src/storage/verbs.ts'
import { execute } from '../faults/execute.ts'
import { connectTo } from '../storage/transaction.ts'
import { type EngineKind, engineKinds, postgres, type TestDatabase } from '../support/engines.ts'
import { rowsOf } from '../support/graphql.ts'

const noon = Date.parse('2026-01-31T12:00:00.000Z')
const hour = 3_600_000
const margin = 60_000

const posts = { kind: 'post-added' } as const
const commentsOf = (postId: number) => ({ kind: 'comment-added', postId }) as const
const kinds = 'post-added post-updated comment-added comment-updated comment-deleted post-deleted'.split(
  ' ',
) as EventContent['kind'][]

it('a place has one text, and those of the former version are unknown', () => {
  const text = (numbers: string) => Buffer.from(numbers).toString('base64url')
  assert.deepEqual(placeFromText(text('7-8')), { position: 7, at: 8 })
  assert.equal(placeToText({ position: 7, at: 8, readAt: 9 }), text('7-8-9'))
  for (const other of ['7.7.1700000000000', '7', '07-8', '7-8-09', '7-8-9-10', '9999999999999999-8'])
    assert.equal(placeFromText(text(other)), undefined, other)
})

interface Written {
  readonly kind: EventContent['kind']
  readonly postId?: number
  readonly commentId?: number
  readonly userId?: number
  /** Default: now. */
  readonly at?: number
}

/** A log whose clock stands still. Events are written past the service, as by a writer of another version. */
class Stage implements AsyncDisposable {
  readonly database: TestDatabase
  readonly engine: Engine<typeof verbs>
  readonly log: EventLog
  #now = noon

  constructor(database: TestDatabase) {
    this.database = database
    this.engine = database.open(catalogue, { clock: { now: () => this.#now } })
    this.log = createEventLog(this.engine)
  }

  static async open(kind: EngineKind): Promise<Stage> {
    const stage = new Stage(await kind.create())
    await stage.setNow(noon)
    return stage
  }

  async setNow(now: number): Promise<void> {
    this.#now = now
    if (this.database.kind === 'sqlite') return
    const time = `timestamp '${new Date(now).toISOString().slice(0, -1)}'`
    await execute(
      this.database,
      `create or replace function now_plus(seconds bigint) returns text language sql stable as $$
         select to_char(${time} + seconds * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
       $$`,
    )
  }

  write(...events: readonly Written[]): Promise<void> {
    const rows = events.map(({ kind, postId = null, commentId = null, userId = null, at = this.#now }) => {
      return `('${kind}', ${postId}, ${commentId}, ${userId}, '${new Date(at).toISOString()}')`
    })
    const columns = 'kind, post_id, comment_id, user_id, created_at'
    return execute(this.database, `insert into outbox (${columns}) values ${rows.join()}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engine[Symbol.asyncDispose]()
    await this.database[Symbol.asyncDispose]()
  }
}

function postAdded(postId: number, at?: number): Written {
  return { kind: 'post-added', postId, ...(at !== undefined && { at }) }
}

const placeOf = ({ position, at }: Event): Place => ({ position, at })

const positionsIn = (events: readonly Event[] | undefined) => events?.map(({ position }) => position)

const beginning: Place = { position: 0, at: 0 }

for (const kind of engineKinds) {
  describe(`The log of events on ${kind.name}`, { skip: kind.skip }, () => {
    it('numbers events without gaps, and returns each once, in portions that tell whether more follow', async () => {
      await using stage = await Stage.open(kind)
      await stage.write(...Array.from({ length: 1_100 }, (_, index) => postAdded(index + 1)))
      let place = beginning
      const portions: number[] = []
      const events: Event[] = []
      for (let more = true; more; ) {
        const found = await stage.log.after(place, events.length === 0)
        portions.push(found.events.length)
        events.push(...found.events)
        place = found.events.at(-1) ?? place
        more = found.more
      }
      assert.deepEqual(portions, [500, 500, 100])
      assert.ok(events.every((event, index) => event.position === index + 1 && 'postId' in event))
      const posts = events.map(event => 'postId' in event && event.postId)
      const inOrder = events.map((_, index) => index + 1)
      assert.deepEqual(posts, inOrder)
      const { events: later, more, waitingSince, lost } = await stage.log.after(place, false)
      assert.deepEqual([later, more, waitingSince, lost], [[], false, undefined, false])
    })

    it('ends at or after everything that was committed before, however much that is', async () => {
      await using stage = await Stage.open(kind)
      assert.deepEqual(await stage.log.end(), { position: 0, at: 0, readAt: noon })
      let written = 0
      for (const count of [1, 499, 500, 501, 1_250]) {
        await stage.write(...Array.from({ length: count }, (_, index) => postAdded(index + 1, noon - count)))
        written += count
        assert.deepEqual(await stage.log.end(), { position: written, at: noon - count, readAt: noon })
      }
    })

    it('keeps the place of an event for exactly an hour, and knows it from the same position in another log', async () => {
      await using stage = await Stage.open(kind)
      const { log } = stage
      await stage.write(postAdded(1), postAdded(2, noon + 1))
      const { events } = await log.after(beginning, true)
      const [first, second] = events.map(placeOf)
      if (first === undefined || second === undefined) return assert.fail()
      const kept = async () => [await log.keeps(first), await log.keeps(second)]
      assert.deepEqual(await kept(), [true, true])
      assert.equal(await log.keeps({ ...first, at: noon - 1 }), false)
      assert.equal(await log.keeps({ ...first, at: noon + 1, readAt: noon }), false)
      assert.equal(await log.keeps({ ...second, position: 3 }), false)
      await stage.setNow(noon + hour)
      assert.deepEqual(await kept(), [true, true])
      await stage.setNow(noon + hour + 1)
      assert.deepEqual(await kept(), [false, true])
      await stage.setNow(noon + hour + margin + 1)
      assert.equal(await log.purge(), 1)
      assert.deepEqual(await kept(), [false, false])
    })

    it('keeps the place of its end for exactly an hour, also if it is empty or its last event was purged', async () => {
      await using stage = await Stage.open(kind)
      const { log } = stage
      const assertKeptForAnHour = async (end: Place) => {
        const readAt = end.readAt ?? assert.fail()
        for (const later of [0, hour, hour + 1]) {
          await stage.setNow(readAt + later)
          assert.equal(await log.keeps(end), later <= hour, `${JSON.stringify(end)} after ${later} ms`)
        }
      }
      await assertKeptForAnHour(await log.end())
      // An event that is itself no longer kept, before and after it is purged.
      await stage.write(postAdded(1, noon))
      await stage.setNow(noon + 2 * hour)
      const before = await log.end()
      assert.deepEqual(before, { position: 1, at: noon, readAt: noon + 2 * hour })
      await assertKeptForAnHour(before)
      await stage.setNow(noon + 2 * hour)
      assert.equal(await log.purge(), 1)
      const after = await log.end()
      assert.deepEqual(after, { position: 1, at: 0, readAt: noon + 2 * hour })
      for (const end of [before, after]) await assertKeptForAnHour(end)
      // An event that is still kept, but is gone: this is another log.
      await stage.setNow(noon + 2 * hour)
      assert.equal(await log.keeps({ ...before, at: noon + 2 * hour }), false)
      assert.equal(await log.keeps({ ...after, position: 2 }), false)
    })

    it('purges events an hour and a minute old, in portions, and only a whole beginning', async () => {
      await using stage = await Stage.open(kind)
      const { log } = stage
      const bound = noon - hour - margin
      const old = Array.from({ length: 700 }, () => postAdded(1, bound - 1))
      await stage.write(...old, postAdded(1, bound), ...old, postAdded(1))
      await log.end()
      assert.deepEqual([await log.purge(), await log.purge(), await log.purge()], [500, 200, 0])
      const [[first] = []] = await rowsOf(stage.engine, 'select min(id), count(*) from outbox')
      assert.equal(Number(first), 701)
      await stage.setNow(noon + 1)
      assert.deepEqual([await log.purge(), await log.purge(), await log.purge()], [500, 201, 0])
      assert.equal((await log.end()).position, 1_402)
    })

    it('returns the events of a topic alone, in order, between two positions, in portions, and the end of a post behind all events of its comments', async () => {
      await using stage = await Stage.open(kind)
      const { log } = stage
      const written = (kind: EventContent['kind'], postId: number) =>
        ({ kind, postId, ...(kind.startsWith('comment') && { commentId: postId + 10 }) }) as const
      const ofPosts = [7, 8].flatMap(postId => kinds.map(kind => written(kind, postId)))
      await stage.write(...ofPosts, { kind: 'user-revoked', userId: 7 })
      await log.end()
      const found = async (...args: Parameters<EventLog['ofTopic']>) => positionsIn(await log.ofTopic(...args))
      const expected: readonly (readonly [topic: Topic, after: number, through: number, ...positions: number[]])[] = [
        [posts, 0, 13, 1, 7],
        [posts, 1, 7, 7],
        [posts, 0, 6, 1],
        [posts, 7, 7],
        [{ kind: 'post-updated' }, 0, 13, 2, 8],
        [{ kind: 'post-deleted' }, 0, 13, 6, 12],
        [commentsOf(8), 0, 13, 9, 12],
        [commentsOf(8), 9, 12, 12],
        [commentsOf(9), 0, 13],
        [{ kind: 'comment-updated', postId: 8 }, 0, 13, 10, 12],
        [{ kind: 'comment-deleted', postId: 8 }, 0, 13, 11, 12],
      ]
      for (const [topic, after, through, ...positions] of expected)
        assert.deepEqual(await found(topic, after, through), positions, `${topic.kind} ${after} ${through}`)
      await stage.write(...Array.from({ length: 50 }, () => written('comment-updated', 9)), written('post-deleted', 9))
      const { position: last } = await log.end()
      const all = Array.from({ length: 51 }, (_, at) => at + 14)
      const topic = { kind: 'comment-updated', postId: 9 } as const
      assert.deepEqual(await found(topic, 0, last), all.slice(0, 50))
      assert.deepEqual(await found(topic, 63, last), all.slice(50))
    })

    it('tells that events of a topic may be missing if some after the position were purged', async () => {
      await using stage = await Stage.open(kind)
      const { log } = stage
      await stage.write(postAdded(1, noon - 2 * hour), postAdded(2, noon - 2 * hour), postAdded(3))
      await log.end()
      assert.equal(await log.purge(), 2)
      for (const topic of [posts, commentsOf(1)]) {
        assert.deepEqual([await log.ofTopic(topic, 0, 3), await log.ofTopic(topic, 1, 3)], [undefined, undefined])
        assert.deepEqual(positionsIn(await log.ofTopic(topic, 2, 3)), topic === posts ? [3] : [])
      }
      await stage.setNow(noon + 2 * hour)
      assert.equal(await log.purge(), 1)
      assert.deepEqual([await log.ofTopic(posts, 2, 3), await log.ofTopic(posts, 3, 3)], [undefined, []])
    })

    it('tells whether a post was deleted after a position', async () => {
      await using stage = await Stage.open(kind)
      const { log } = stage
      await stage.write(postAdded(7), { kind: 'comment-added', postId: 7, commentId: 1 })
      await log.end()
      assert.equal(await log.tellsEndOf(7, 0), false)
      await stage.write({ kind: 'post-deleted', postId: 7 }, { kind: 'comment-added', postId: 8, commentId: 2 })
      // Also before the event has its position.
      assert.deepEqual([await log.tellsEndOf(7, 2), await log.tellsEndOf(8, 2)], [true, false])
      await log.end()
      assert.deepEqual([await log.tellsEndOf(7, 2), await log.tellsEndOf(7, 3)], [true, false])
    })

    it('notices that it has lost events, and takes neither a purge nor an idle hour for that', async () => {
      await using stage = await Stage.open(kind)
      const { log, database } = stage
      await stage.write(postAdded(1), postAdded(2), postAdded(3))
      const { events } = await log.after(beginning, true)
      const last = placeOf(events[2] ?? assert.fail())
      const lost = async (place: Place) => (await log.after(place, false)).lost
      assert.deepEqual([await lost(last), await lost(await log.end()), await lost(beginning)], [false, false, false])
      assert.equal(await lost({ position: 4, at: 0 }), true, 'the head went back')
      assert.equal(await lost({ ...last, at: noon + 1 }), true, 'another event has its position')
      await stage.setNow(noon + 2 * hour)
      assert.equal(await lost(last), false, 'nothing has happened for long')
      assert.equal(await log.purge(), 3)
      assert.deepEqual([await lost(last), await lost(await log.end())], [false, false], 'after a purge')
      await stage.write(postAdded(4))
      const [fourth] = (await log.after(last, true)).events
      await execute(database, 'delete from outbox')
      assert.equal(await lost(placeOf(fourth ?? assert.fail())), true, 'an event is gone before its time')
    })

    it('reads only the rows that it needs, by an index, with and without statistics', async () => {
      await using stage = await Stage.open(kind)
      const { log, engine } = stage
      await stage.write(
        ...Array.from({ length: 20_000 }, (_, index) =>
          index % 10 === 0 ? postAdded(index) : ({ kind: 'comment-added', postId: index, commentId: 1 } as const),
        ),
        ...Array.from({ length: 1_000 }, () => ({ kind: 'comment-added', postId: 5, commentId: 1 }) as const),
        ...Array.from({ length: 1_000 }, () => ({ kind: 'post-updated', postId: 5 }) as const),
      )
      await log.end()
      const read = mock.method(engine, 'read')
      await log.ofTopic(posts, 19_000, 20_000)
      await log.ofTopic(commentsOf(15_001), 100, 20_000)
      await log.tellsEndOf(15_000, 100)
      await log.ofTopic({ kind: 'post-updated' }, 19_000, 20_000)
      await log.ofTopic({ kind: 'post-deleted' }, 100, 22_000)
      await log.ofTopic({ kind: 'comment-deleted', postId: 5 }, 100, 22_000)
      await log.after({ position: 19_000, at: noon }, false)
      await log.keeps({ position: 19_000, at: noon })
      await log.end()
      const statements = read.mock.calls.map(({ arguments: [statement] }) => statement)
      for (const statistics of [false, true]) {
        if (statistics) await execute(stage.database, 'analyze')
        const plans = await plansOf(stage.database, statements)
        const ofTopic = plans.slice(0, 6).map(plan => /outbox_((?:new|of|changed)_posts?)/.exec(plan)?.[1])
        const wanted = ['new_posts', 'of_post', 'of_post', 'changed_posts', 'changed_posts', 'of_post']
        assert.deepEqual(ofTopic, wanted, plans.join('\n'))
        for (const plan of plans) assert.doesNotMatch(plan, /^SCAN outbox|Seq Scan on outbox|Removed by Filter/m)
      }
    })
  })
}

describe('The order of events on PostgreSQL', { skip: postgres.skip }, () => {
  it('who first gives an event its position has news for others, and so has who wrote it', async () => {
    await using stage = await Stage.open(postgres)
    await stage.write(postAdded(1))
    const isNews = async (written: boolean) => (await stage.log.after(beginning, written)).isNews
    assert.deepEqual([await isNews(false), await isNews(false), await isNews(true)], [true, false, true])
  })

  it('an event without a position is announced by its time, and read next', async () => {
    await using stage = await Stage.open(postgres)
    await stage.write(postAdded(1))
    await stage.log.end()
    await stage.write(postAdded(2))
    const { events, more, waitingSince } = await stage.log.after(beginning, false)
    assert.deepEqual([positionsIn(events), more, waitingSince], [[1], true, noon])
    assert.deepEqual(positionsIn((await stage.log.after(events[0] ?? assert.fail(), false)).events), [2])
  })

  it('each event gets one position, and readers see all of them in order, under 16 writers and 4 sequencers', async () => {
    await using parts = new AsyncDisposableStack()
    const database = parts.use(await postgres.create())
    const written = new Set<number>()
    let writing = 16
    const write = async (client: pg.Client, number: number) => {
      for (let n = 0; n < 30; n++) {
        const ids = Array.from({ length: 1 + (n % 3) }, (_, index) => (number * 30 + n) * 3 + index + 1)
        await client.query('begin')
        for (const id of ids)
          await client.query(`insert into outbox (kind, post_id, created_at) values ('post-added', ${id}, now_plus(0))`)
        const keeps = (n + number) % 10 !== 0
        await client.query(keeps ? 'commit' : 'rollback')
        if (keeps) for (const id of ids) written.add(id)
      }
      writing--
    }
    const shown = (position: number, postId: unknown) => `${position} ${postId}`
    /** Asks only for what is behind the last event that it saw. */
    const read = async (log: EventLog, sequences: boolean) => {
      const events: Event[] = []
      for (let isLast = false, more = true; !isLast || more; ) {
        isLast = writing === 0
        const found = await log.after(events.at(-1) ?? beginning, sequences)
        assert.ok(!found.lost)
        events.push(...found.events)
        more = found.more
      }
      return events.map(event => shown(event.position, 'postId' in event && event.postId))
    }
    const connect = async () => parts.use(await connectTo(database.location))
    const clients = await Promise.all(Array.from({ length: writing }, connect))
    const logs = Array.from({ length: 6 }, () => createEventLog(parts.use(database.open(catalogue, { poolMax: 1 }))))
    const reading = logs.map((log, index) => read(log, index < 4))
    const [, ...seen] = await Promise.all([Promise.all(clients.map(write)), ...reading])
    const { rows = [] } = (await clients[0]?.query('select post_id from outbox order by position')) ?? {}
    const posts = rows.map(({ post_id }) => Number(post_id))
    assert.deepEqual(new Set(posts), written)
    const expected = posts.map((id, index) => shown(index + 1, id))
    for (const each of seen) assert.deepEqual(each, expected)
  })
})

async function plansOf({ kind, location }: TestDatabase, statements: readonly Statement[]): Promise<readonly string[]> {
  if (kind === 'sqlite') {
    using connection = new SqliteConnection(location, 'read')
    return statements.map(({ text, values }) =>
      connection
        .run({ text: `explain query plan ${text}`, values })
        .map(row => row[3])
        .join('\n'),
    )
  }
  await using client = await connectTo(location, planning)
  const plans: string[] = []
  for (const { text, values } of statements) {
    const { rows } = await client.query(`explain (analyze, costs off) ${text}`, [...values])
    plans.push(rows.map(row => row['QUERY PLAN']).join('\n'))
  }
  return plans
}
