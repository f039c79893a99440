import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import type { Event, EventLog, Place } from '../../src/core/events.ts'
import { createEventLog } from '../../src/storage/entities/outbox.ts'
import { catalogue } from '../../src/storage/verbs.ts'
import { postgres } from '../support/engines.ts'

/** As a writer of the former version inserts an event, which knows nothing of positions. */
function insertOf(postId: number): string {
  return `insert into outbox (kind, post_id, created_at) values ('post-added', ${postId}, now_plus(0))`
}

const postsIn = (events: readonly Event[]) => events.map(event => ('postId' in event ? event.postId : 0))

async function connect(location: string, parts: AsyncDisposableStack): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: location })
  await client.connect()
  parts.defer(() => client.end())
  return client
}

describe('The order of events on PostgreSQL', { skip: postgres.skip }, () => {
  const parts = new AsyncDisposableStack()
  let log: EventLog
  let client: pg.Client
  before(async () => {
    const database = parts.use(await postgres.create())
    log = createEventLog(parts.use(database.open(catalogue)))
    client = await connect(database.location, parts)
  })
  after(() => parts.disposeAsync())

  it('who first gives an event its position has news for others, and so has who wrote it', async () => {
    const from = await log.end()
    await client.query(insertOf(1))
    const isNews = async (written: boolean) => (await log.after(from, written)).isNews
    assert.deepEqual([await isNews(false), await isNews(false), await isNews(true)], [true, false, true])
  })

  it('an event without a position is announced by its time, and read next', async () => {
    const from = await log.end()
    await client.query(insertOf(1))
    await log.end()
    await client.query(insertOf(2))
    const { events, more, waitingSince = 0 } = await log.after(from, false)
    assert.deepEqual([postsIn(events), more], [[1], true])
    assert.ok(Math.abs(waitingSince - Date.now()) < 60_000)
    assert.deepEqual(postsIn((await log.after(events[0] ?? assert.fail(), false)).events), [2])
  })

  it(
    'each event gets one position, and readers see all of them in order, under 16 writers and 4 sequencers',
    assertOrder,
  )
})

const writers = 16
const transactions = 30

/** Writers, sequencers and readers that work at once. Readers ask only for positions after the last that they saw. */
async function assertOrder(): Promise<void> {
  await using parts = new AsyncDisposableStack()
  const database = parts.use(await postgres.create())
  const written = new Set<number>()
  let [writing, sequencing] = [writers, 4]
  const write = async (writer: pg.Client, number: number) => {
    for (let n = 0; n < transactions; n++) {
      const ids = Array.from({ length: 1 + (n % 3) }, (_, index) => (number * transactions + n) * 3 + index + 1)
      await writer.query('begin')
      for (const id of ids) await writer.query(insertOf(id))
      const keeps = (n + number) % 10 !== 0
      await writer.query(keeps ? 'commit' : 'rollback')
      if (keeps) for (const id of ids) written.add(id)
    }
    writing--
  }
  const sequence = async (log: EventLog) => {
    const events: Event[] = []
    try {
      for (let isLast = false, more = true; !isLast || more; ) {
        isLast = writing === 0
        const place: Place = events.at(-1) ?? { position: 0, at: 0 }
        const found = await log.after(place, true)
        if (found.lost) break
        events.push(...found.events)
        more = found.more
      }
    } catch (error) {
      return [String(error)] // two events with one position
    } finally {
      sequencing--
    }
    return events.map(event => `${event.position} ${'postId' in event && event.postId}`)
  }
  const read = async (reader: pg.Client) => {
    const seen: string[] = []
    for (let isLast = false, cursor = 0; ; ) {
      const { rows } = await reader.query(
        'select position, post_id from outbox where position > $1 order by position limit 50',
        [cursor],
      )
      for (const row of rows) seen.push(`${row.position} ${row.post_id}`)
      cursor = Number(rows.at(-1)?.position ?? cursor)
      if (isLast && rows.length === 0) return seen
      isLast = sequencing === 0
    }
  }
  const clients = await Promise.all(Array.from({ length: writers + 2 }, () => connect(database.location, parts)))
  const logs = Array.from({ length: 4 }, () => createEventLog(parts.use(database.open(catalogue, { poolMax: 1 }))))
  const [, ...seen] = await Promise.all([
    Promise.all(clients.slice(2).map(write)),
    ...clients.slice(0, 2).map(read),
    ...logs.map(sequence),
  ])
  const { rows } = await (clients[0] ?? assert.fail()).query('select position, post_id from outbox order by position')
  assert.deepEqual(new Set(rows.map(row => Number(row.post_id))), written)
  const inOrder = rows.map(({ post_id }, index) => `${index + 1} ${post_id}`)
  for (const each of seen) assert.deepEqual(each, inOrder)
}
