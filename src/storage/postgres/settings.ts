import type { StoreObserver } from '../../core/ports.ts'
import type { Engine } from '../engine.ts'
import { type Statement, sql } from '../sql.ts'
import type { Timeouts } from '../timeouts.ts'
import type { Verbs } from '../verb.ts'

/**
 * Planner settings. Statements get one generic plan, which does not know the value of a limit. PostgreSQL then assumes
 * that the limit is a tenth of the table. With the default settings it would make a new plan for each use, or read and
 * sort whole tables. Each of our statements can find its rows in order by an index.
 */
export const planning = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_sort: 'off',
  enable_incremental_sort: 'off',
  max_parallel_workers_per_gather: '0',
  jit: 'off',
} as const

/** Behind a pooler, the planner settings cannot be sent with a connection. The role must have them. */
export async function warnOfMissingSettings(
  engine: Pick<Engine<Verbs>, 'read'>,
  observer: StoreObserver,
): Promise<void> {
  const missing: string[] = []
  for (const [name, value] of Object.entries(planning)) {
    const [row] = await engine.read(sql`select current_setting(${name}), quote_ident(current_user)`)
    if (row?.[0] !== value) missing.push(`alter role ${row?.[1]} set ${name} = ${value}`)
  }
  if (missing.length > 0) observer.trouble(`Reads may be slow. Run: ${missing.join('; ')}`, undefined)
}

/** The timeouts of PostgreSQL, in milliseconds. */
export function timeoutSettings({ operation, lock }: Timeouts) {
  return {
    /** Less than an operation has, so that PostgreSQL gives up before we do and the connection stays usable. */
    statement_timeout: Math.max(Math.round(operation / 2), operation - 100),
    /** Random: if two transactions wait for each other, one of them gives up first. */
    lock_timeout: Math.round(lock * (0.3 + Math.random())),
    /** PostgreSQL ends a transaction whose client has vanished. Its locks would hold back writes and events. */
    idle_in_transaction_session_timeout: operation * 2,
  }
}

/** Sets the timeouts of one transaction. */
export function localTimeouts(timeouts: Timeouts): readonly Statement[] {
  const settings = Object.entries(timeoutSettings(timeouts))
  return settings.map(([name, ms]) => sql`select set_config(${name}, ${String(ms)}, true)`)
}
