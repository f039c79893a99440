import type { TestDatabase } from '../support/engines.ts'
import { execute } from './execute.ts'

/** PostgreSQL only, whose own clock decides: from now on it is this many seconds ahead of the real clock. */
export function setDatabaseClockAhead(database: TestDatabase, seconds: number): Promise<void> {
  return execute(
    database,
    `create or replace function now_plus(seconds bigint) returns text language sql stable as $$
       select to_char(now() at time zone 'utc' + (seconds + ${seconds}) * interval '1 second',
                      'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
     $$`,
  )
}

/** PostgreSQL only: from now on its clock stops at this moment, given in milliseconds since 1970. */
export function stopDatabaseClock(database: TestDatabase, now: number): Promise<void> {
  return execute(
    database,
    `create or replace function now_plus(seconds bigint) returns text language sql stable as $$
       select to_char(timestamp '${new Date(now).toISOString().slice(0, -1)}' + seconds * interval '1 second',
                      'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
     $$`,
  )
}
