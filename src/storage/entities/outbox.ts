import { isOutage } from '../../core/errors.ts'
import type { Event, EventLog, NextEvents, Place, Topic } from '../../core/events.ts'
import type { Engine } from '../engine.ts'
import { queued, type Row, type Statement, sql } from '../sql.ts'
import type { Steps } from '../verb.ts'

/**
 * The event log, stored in the outbox table. SQLite has one writer, so the id of a row is its position. In PostgreSQL
 * transactions commit in any order, so rows get their positions after their commit, from the sequencer. It gives them
 * under the lock of one row: a position becomes visible only after all smaller ones.
 */
export function createEventLog(engine: Engine<typeof outboxVerbs>, keptSeconds = 3600): EventLog {
  const texts = textsFor(engine.dialect.name)
  const sequence = (then: Statement) => engine.write('sequenceEvents', then)
  const isKept = (at: number, now: number) => at >= now - keptSeconds * 1000
  const found = (rows: readonly Row[], { position, at }: Place, isNews: boolean): NextEvents => {
    const { head, rowAt, waitingSince, now } = stateOf(rows)
    const events = rows.filter(row => row[4] !== null).map(row => eventOf(row.slice(4)))
    const lost = position > head || (rowAt === undefined ? isKept(at, now) : rowAt !== at)
    const more = events.length === readTogether || waitingSince !== undefined
    return { events, isNews, now, waitingSince, lost, more }
  }
  return {
    async end() {
      const statement = { text: texts.end, values: [] }
      let state = stateOf(await engine.read(statement))
      for (let before = -readTogether; state.waitingSince !== undefined; ) {
        // Fewer than a whole portion: all that were committed before have their positions.
        if (state.head - before < readTogether) break
        before = state.head
        state = stateOf(await sequence(statement))
      }
      return { position: state.head, at: state.rowAt ?? 0, readAt: state.now }
    },
    async after(place, written) {
      const statement = { text: texts.after, values: [place.position, readTogether] }
      const look = async () => found(await engine.read(statement), place, written)
      if (!written || engine.dialect.name === 'sqlite') {
        const known = await look()
        if (known.waitingSince === undefined || known.events.length > 0 || known.lost) return known
      }
      try {
        return found(await sequence(statement), place, true)
      } catch (error) {
        if (!isOutage(error)) throw error
        // Nobody else tells how long events wait for their positions.
        return { ...(await look()), more: false }
      }
    },
    async ofTopic(topic, after, through) {
      const values = [after, through, keptTogether, ...(topic.postId === undefined ? [] : [topic.postId])]
      const rows = await engine.read({ text: texts.ofTopic[topic.kind], values })
      if (Number(rows[0]?.[0]) > after + 1) return undefined
      return rows.filter(row => row[1] !== null).map(row => eventOf(row.slice(1)))
    },
    async keeps(place) {
      const { head, rowAt, now } = stateOf(await engine.read({ text: texts.state, values: [place.position] }))
      const { position, at, readAt = at } = place
      return position <= head && isKept(readAt, now) && (rowAt === undefined ? !isKept(at, now) : rowAt === at)
    },
    tellsEndOf: async (postId, after) => (await engine.read({ text: texts.endOf, values: [postId, after] })).length > 0,
    purge: () => engine.write('purgeOutbox', texts.purge, -keptSeconds - marginSeconds),
  }
}

/** An event of the change that the same transaction makes. */
export function eventAbout(
  kind: Topic['kind'],
  postId: number,
  commentId: number | null,
  traceparent: string | null,
): Statement {
  return queued(sql`insert into outbox (kind, post_id, comment_id, created_at, traceparent)
                    values (${kind}, ${postId}, ${commentId}, now_plus(0), ${traceparent})`)
}

export const outboxVerbs = {
  /** Gives positions to the oldest events that have none. Returns the rows of a statement that sees them. */
  *sequenceEvents(then: Statement): Steps<readonly Row[]> {
    yield queued(sql`select position from event_head for update`)
    yield queued(sql`
      with next as (select id, row_number() over (order by id) as number from outbox
                    where position is null order by id limit ${readTogether}),
      given as (update outbox set position = event_head.position + next.number from next, event_head
                where outbox.id = next.id returning outbox.id)
      update event_head set position = position + (select count(*) from given)`)
    return yield then
  },

  *purgeOutbox(text: string, seconds: number): Steps<number> {
    return (yield { text, values: [seconds, purgedTogether] }).length
  },
}

/** Events are kept a little longer than promised, for clients that are reading them, and because times are not exact. */
const marginSeconds = 60
const purgedTogether = 500
const readTogether = 500
const keptTogether = 50 // by each subscription that catches up, and its client may read slowly

/** What the engines call the position of an event, the last position given, and the time of an event without one. */
const names = {
  sqlite: {
    position: 'id',
    head: "coalesce((select seq from sqlite_sequence where name = 'outbox'), 0)",
    waiting: 'null',
  },
  postgres: {
    position: 'position',
    head: '(select position from event_head)',
    waiting: '(select created_at from outbox where position is null order by id limit 1)',
  },
}

function textsFor(engine: keyof typeof names) {
  const { position, head, waiting } = names[engine]
  const columns = `${position} as position, kind, post_id, comment_id, user_id, created_at, traceparent`
  const state = (place: string) =>
    `select ${head} as head, (select created_at from outbox where ${position} = ${place}) as at,
            ${waiting} as waiting, now_plus(0) as now`
  const joined = (first: string, events: string) =>
    `select * from (${first}) as state left join (${events}) as events on true order by events.position`
  const rows = (condition: string) =>
    `select * from (select ${columns} from outbox where ${position} > $1 and ${position} <= $2 and ${condition}
                    order by ${position} limit $3) as found`
  const page = (events: string) => joined(`select coalesce(min(${position}), ${head} + 1) from outbox`, events)
  // SQLite uses an index only if its whole condition is repeated.
  // `comment_id` keeps PostgreSQL from this index where it would go through the events of all posts to find one post.
  const changed = (kind: string) =>
    page(rows(`kind = '${kind}' and kind in ('post-updated', 'post-deleted') and comment_id is null`))
  const ofComments = (kind: string) => {
    const parts = [kind, 'post-deleted'].map(each => rows(`post_id = $4 and kind = '${each}' and kind <> 'post-added'`))
    return page(`select * from (${parts.join(' union all ')}) as found order by position limit $3`)
  }
  return {
    end: state(head),
    state: state('$1'),
    after: joined(state('$1'), `select ${columns} from outbox where ${position} > $1 order by ${position} limit $2`),
    ofTopic: {
      'post-added': page(rows("kind = 'post-added'")),
      'post-updated': changed('post-updated'),
      'post-deleted': changed('post-deleted'),
      'comment-added': ofComments('comment-added'),
      'comment-updated': ofComments('comment-updated'),
      'comment-deleted': ofComments('comment-deleted'),
    } satisfies Record<Topic['kind'], string>,
    endOf: `select id from outbox where post_id = $1 and kind <> 'post-added' and kind = 'post-deleted'
             and (${position} > $2 or ${position} is null) limit 1`,
    // Only a whole beginning of the log, so that no gap can arise.
    purge: `
      with oldest as (select ${position} as position, created_at from outbox
                      where ${position} is not null order by ${position} limit $2)
      delete from outbox where ${position} <= (select max(position) from oldest)
        and ${position} < coalesce((select min(position) from oldest where created_at >= now_plus($1)), 9007199254740991)
      returning id`,
  }
}

function stateOf([row]: readonly Row[]) {
  const [head, at, waiting, now] = row ?? []
  return { head: Number(head), rowAt: timeIn(at), waitingSince: timeIn(waiting), now: timeIn(now) ?? 0 }
}

function timeIn(value: Row[number] | undefined): number | undefined {
  return typeof value === 'string' ? Date.parse(value) : undefined
}

function eventOf([position, kind, postId, commentId, userId, createdAt, traceparent]: Row): Event {
  const content = { kind, postId, commentId, userId, ...(traceparent !== null && { traceparent }) }
  return { position: Number(position), at: Date.parse(String(createdAt)), ...content } as Event
}
