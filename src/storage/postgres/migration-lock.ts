import { setTimeout as delay } from 'node:timers/promises'
import { sql } from '../sql.ts'
import { MigrationSession } from './migration-session.ts'

/**
 * Waits until no other instance migrates, and keeps others from it until it is disposed. Its transaction stays open but
 * runs nothing: an index that is being built waits for statements that run. PostgreSQL ends the transaction when it has
 * heard nothing for a minute, so that an instance whose machine is gone stops nobody.
 */
export async function lockMigrations(url: string, tell: (line: string) => void): Promise<AsyncDisposable> {
  await using parts = new AsyncDisposableStack()
  const session = parts.use(await MigrationSession.open(url))
  await session.script(`begin; set local idle_in_transaction_session_timeout = '60s'`)
  // Without a parameter: with one, the statement would stay open, and indexes would wait for it.
  const tryLock = sql`select case when pg_try_advisory_xact_lock(1685415284) then 1 end`
  for (let tries = 0; (await session.query(tryLock))[0]?.[0] !== 1; tries++) {
    if (tries % 20 === 6) tell('Another instance migrates the database. Waiting for it.')
    await delay(Math.min(500, 10 * 2 ** tries))
  }
  const timer = setInterval(() => session.script('select 1').catch(() => {}), 10_000)
  parts.defer(() => clearInterval(timer))
  return parts.move()
}
