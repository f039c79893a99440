import type { TestDatabase } from '../support/engines.ts'
import { execute } from './execute.ts'

/** Sets the clock of a PostgreSQL database to this many seconds ahead of the real clock. */
export function setDatabaseClockAhead(database: TestDatabase, seconds: number): Promise<void> {
  return replaceClock(database, `now() at time zone 'utc' + ${seconds} * interval '1 second'`)
}

/** Stops the clock of a PostgreSQL database at this time, in milliseconds since 1970. */
export function stopDatabaseClock(database: TestDatabase, now: number): Promise<void> {
  return replaceClock(database, `timestamp '${new Date(now).toISOString().slice(0, -1)}'`)
}

function replaceClock(database: TestDatabase, now: string): Promise<void> {
  return execute(
    database,
    `create or replace function now_plus(seconds bigint) returns text language sql stable as $$
       select to_char(${now} + seconds * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
     $$`,
  )
}
