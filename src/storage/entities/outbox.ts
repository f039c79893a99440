import type { Event, EventLog, Place, Position, Snapshot } from '../../core/events.ts'
import type { Engine } from '../engine.ts'
import { type Row, type Statement, sql } from '../sql.ts'
import type { Steps } from '../verb.ts'

/**
 * The event log, stored in the outbox table. The two engines determine the order of events differently; only this file
 * and PostgreSQL's `begin` handle that difference.
 */
export function createEventLog(engine: Engine<typeof outboxVerbs>, keptSeconds = 3600): EventLog {
  const { now, bound, after, keeps, purge } = ordering[engine.dialect.name]
  const readBound = async () => {
    if (bound === undefined) return { least: Number.MAX_SAFE_INTEGER, next: Number.MAX_SAFE_INTEGER }
    const [row] = await engine.read(bound)
    return { least: Number(row?.[0]), next: Number(row?.[1]) }
  }
  const readNow = async () => {
    const [row] = await engine.read(now)
    return snapshotOf(String(row?.[0]))
  }
  return {
    now: readNow,
    async end() {
      // The oldest transaction that runs may be another program's, and very old.
      const transaction = bound === undefined ? (await readNow()).from : (await readBound()).least
      return { transaction, id: 0 }
    },
    async after(position) {
      // Two statements, and so two snapshots: the second one must see everything that was committed below the bound.
      const { least, next } = await readBound()
      if (position.transaction > next) return { events: [], more: false, lost: true }
      const rows = await engine.read(after(position, least))
      const events = rows.filter(([, id]) => id !== null).map(eventOf)
      // Beyond the bound there may be an event that cannot be delivered yet. Its row has no id.
      const held = rows.length > events.length ? Date.parse(String(rows.at(-1)?.[6])) : undefined
      return { events, more: events.length === readTogether || held !== undefined, heldSince: held }
    },
    keeps: async place => (await engine.read(keeps(place, keptSeconds))).length > 0,
    purge: async () => engine.write('purgeOutbox', purge((await readBound()).least, keptSeconds + marginSeconds)),
  }
}

export const outboxVerbs = {
  *purgeOutbox(deletion: Statement): Steps<number> {
    return (yield deletion).length
  },
}

/** Events are kept a little longer than promised, for clients that are reading them, and because times are not exact. */
const marginSeconds = 60
const purgedTogether = 500
const readTogether = 500

interface Ordering {
  /** The current moment in the format of PostgreSQL's snapshots: from:to:running,… */
  readonly now: Statement
  /** Reads two transaction numbers: no event can appear below the first any more, and none has the second or a later one. */
  readonly bound: Statement | undefined
  /** Reads the next events below the bound. */
  readonly after: (position: Position, bound: number) => Statement
  /** Finds the event if it is young enough. */
  readonly keeps: (place: Place, keptSeconds: number) => Statement
  readonly purge: (bound: number, keptSeconds: number) => Statement
}

const ordering: Readonly<Record<'sqlite' | 'postgres', Ordering>> = {
  // SQLite has one writer. So the order of ids is the order of commits, and each row can count as its own transaction.
  sqlite: {
    now: sql`select (coalesce(max(id), 0) + 1) || ':' || (coalesce(max(id), 0) + 1) || ':' from outbox`,
    bound: undefined,
    after: ({ transaction, id }) =>
      sql`select id, id, kind, post_id, comment_id, user_id, created_at from outbox
          where id > ${id === 0 ? transaction - 1 : id} order by id limit ${readTogether}`,
    keeps: ({ position: { id }, at }, keptSeconds) =>
      sql`select id from outbox where id = ${id} and created_at = ${instant(at)}
          and created_at >= now_plus(${-keptSeconds})`,
    purge: (_bound, keptSeconds) =>
      sql`delete from outbox where id in (
            select id from outbox where created_at < now_plus(${-keptSeconds})
            order by created_at limit ${purgedTogether}
          ) returning id`,
  },
  // In PostgreSQL, ids become visible out of order, so events are sorted by the number of their transaction. A
  // transaction that writes events locks the outbox before it gets its number (see `PostgresSession.begin`). So the
  // oldest number among those that hold the lock is the bound. Transactions of others do not matter: a backup or a
  // report that takes an hour delays nothing.
  postgres: {
    now: sql`select pg_current_snapshot()::text`,
    bound: sql`
      with snapshot as materialized (
        select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as least,
               pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next),
      locks as materialized (
        select locktype, virtualtransaction, pid, transactionid::text::bigint as number from pg_locks
        where granted and (locktype = 'transactionid' and mode = 'ExclusiveLock'
          or locktype = 'relation' and mode = 'RowExclusiveLock' and relation = 'outbox'::regclass
            and database = (select oid from pg_database where datname = current_database())))
      select least(next, (
        -- The lock table has the low 32 bits of the number. A writer may have got its number a moment ago, before the
        -- lock table has it. Then the least running number is taken, and the next look finds the right one.
        select min(coalesce(next - ((next - numbers.number) & 4294967295), least))
        from locks as writers left join locks as numbers
          on numbers.locktype = 'transactionid' and numbers.virtualtransaction = writers.virtualtransaction
          and numbers.pid = writers.pid
        where writers.locktype = 'relation'
          -- A number that is 2^31 or more behind is in fact ahead: it was given out after the snapshot.
          and (numbers.number is null or ((next - numbers.number) & 4294967295) < 2147483648)
      )), next from snapshot`,
    after: ({ transaction, id }, bound) =>
      sql`(select transaction_id::text::bigint, id, kind, post_id, comment_id, user_id, created_at from outbox
           where (transaction_id, id) > (${String(transaction)}::text::xid8, ${id}::bigint)
           and transaction_id < ${String(bound)}::text::xid8
           order by transaction_id, id limit ${readTogether})
          union all
          (select null, null, null, null, null, null, created_at from outbox
           where transaction_id >= ${String(bound)}::text::xid8
           and transaction_id < pg_snapshot_xmax(pg_current_snapshot())
           order by transaction_id, id limit 1)`,
    // A restored backup can contain numbers of another server, far above those of this one. They are deleted too.
    keeps: ({ position: { transaction, id }, at }, keptSeconds) =>
      sql`select id from outbox where transaction_id = ${String(transaction)}::text::xid8 and id = ${id}
          and created_at = ${instant(at)} and created_at >= now_plus(${-keptSeconds})`,
    purge: (bound, keptSeconds) =>
      sql`delete from outbox where id in (
            select id from outbox where created_at < now_plus(${-keptSeconds})
            and (transaction_id < ${String(bound)}::text::xid8
              or transaction_id >= pg_snapshot_xmax(pg_current_snapshot()))
            order by created_at limit ${purgedTogether}
          ) returning id`,
  },
}

/** As the database stores it. A time that no date can have is the time of no event. */
function instant(at: number): string {
  return at <= latestDate ? new Date(at).toISOString() : ''
}

const latestDate = 8.64e15

function snapshotOf(snapshot: string): Snapshot {
  const [from, to, running = ''] = snapshot.split(':')
  return { from: Number(from), to: Number(to), running: new Set(running === '' ? [] : running.split(',').map(Number)) }
}

function eventOf([transaction, id, kind, postId, commentId, userId, createdAt]: Row): Event {
  const position = { transaction: Number(transaction), id: Number(id) }
  return { position, at: Date.parse(String(createdAt)), kind, postId, commentId, userId } as Event
}
