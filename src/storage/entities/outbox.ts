import type { Event, EventLog, Position, Snapshot } from '../../core/events.ts'
import type { Engine } from '../engine.ts'
import { type Row, type Statement, sql } from '../sql.ts'
import type { Steps } from '../verb.ts'
import type { verbs } from '../verbs.ts'

/**
 * The event log, stored in the outbox table. The two engines determine the order of events differently; only this file
 * handles that difference.
 */
export function createEventLog(engine: Engine<typeof verbs>): EventLog {
  const { now, after } = orders[engine.dialect.name]
  return {
    async now() {
      const [row] = await engine.read(now)
      return momentOf(String(row?.[0]))
    },
    async after(position) {
      const rows = await engine.read(after(position))
      const events = rows.filter(([, id]) => id !== null).map(eventOf)
      // The last row is all nulls if there are events that cannot be delivered yet.
      return { events, more: events.length === readTogether || events.length < rows.length }
    },
    purge: () => engine.write('purgeOutbox', keptSeconds, purgedTogether),
  }
}

export const outboxVerbs = {
  *purgeOutbox(olderThanSeconds: number, atMost: number): Steps<number> {
    const gone = yield sql`delete from outbox where id in (
                             select id from outbox where created_at < now_plus(${-olderThanSeconds})
                             order by created_at limit ${atMost}
                           ) returning id`
    return gone.length
  },
}

/** Events are kept for an hour. An instance that has not read an event by then is no longer running. */
const keptSeconds = 3600
const purgedTogether = 500
const readTogether = 500

interface Order {
  /** The current moment in the format of PostgreSQL's snapshots: from:to:running,… */
  readonly now: Statement
  readonly after: (position: Position) => Statement
}

const orders: Readonly<Record<'sqlite' | 'postgres', Order>> = {
  // SQLite has one writer. So the order of ids is the order of commits, and each row can count as its own transaction.
  sqlite: {
    now: sql`select (coalesce(max(id), 0) + 1) || ':' || (coalesce(max(id), 0) + 1) || ':' from outbox`,
    after: ({ transaction, id }) =>
      sql`select id, id, kind, post_id, comment_id, user_id, created_at from outbox
          where id > ${id === 0 ? transaction - 1 : id} order by id limit ${readTogether}`,
  },
  // In PostgreSQL, ids become visible out of order. But no rows can be added below the oldest running transaction.
  postgres: {
    now: sql`select pg_current_snapshot()::text`,
    after: ({ transaction, id }) =>
      sql`(select transaction_id::text::bigint, id, kind, post_id, comment_id, user_id, created_at from outbox
           where (transaction_id, id) > (${String(transaction)}::text::xid8, ${id}::bigint)
           and transaction_id < pg_snapshot_xmin(pg_current_snapshot())
           order by transaction_id, id limit ${readTogether})
          union all
          (select null, null, null, null, null, null, null from outbox
           where transaction_id >= pg_snapshot_xmin(pg_current_snapshot()) limit 1)`,
  },
}

function momentOf(snapshot: string): Snapshot {
  const [from, to, running = ''] = snapshot.split(':')
  return { from: Number(from), to: Number(to), running: new Set(running === '' ? [] : running.split(',').map(Number)) }
}

function eventOf([transaction, id, kind, postId, commentId, userId, createdAt]: Row): Event {
  const position = { transaction: Number(transaction), id: Number(id) }
  return { position, at: Date.parse(String(createdAt)), kind, postId, commentId, userId } as Event
}
