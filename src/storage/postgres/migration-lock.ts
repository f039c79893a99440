import { setTimeout as delay } from 'node:timers/promises'
import { sql } from '../sql.ts'
import { failureOf, isAlreadyThere } from './errors.ts'
import { MigrationSession } from './migration-session.ts'

export interface MigrationLock extends AsyncDisposable {
  /** Throws if the lock was lost. Then another instance may be migrating. */
  check(): void
}

/**
 * Waits until no other instance migrates, and keeps others from it. The lock is that of a row, in a transaction that stays
 * open but runs nothing: an index that is being built waits for statements that run. PostgreSQL ends the transaction when
 * it has heard nothing for a minute, so that an instance whose machine is gone stops nobody.
 */
export async function lockMigrations(url: string, tell: (line: string) => void): Promise<MigrationLock> {
  await using parts = new AsyncDisposableStack()
  const session = parts.use(await MigrationSession.open(url))
  await createTable(session)
  for (let tries = 0; !(await isLocked(session)); tries++) {
    if (tries % 20 === 6) tell('Another instance migrates the database. Waiting for it.')
    await delay(Math.min(500, 10 * 2 ** tries))
  }
  const timer = setInterval(() => session.script('select 1').catch(() => {}), 10_000)
  parts.defer(() => clearInterval(timer))
  const all = parts.move()
  return {
    check() {
      if (session.isLost) throw new Error('The connection that holds the lock of migrations was lost')
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  }
}

async function isLocked(session: MigrationSession): Promise<boolean> {
  try {
    await session.script(`begin; set local idle_in_transaction_session_timeout = '60s'`)
    await session.query(sql`select id from migration_lock for update nowait`)
    return true
  } catch (error) {
    if (failureOf(error) !== 'conflict') throw error
    await session.script('rollback')
    return false
  }
}

/**
 * If several instances create the table at the same moment, PostgreSQL refuses all but one, although the statement says
 * `if not exists`. The next try then finds the table.
 */
async function createTable(session: MigrationSession): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await session.transact(() =>
        session.script(`create table if not exists migration_lock (id integer primary key check (id = 1));
                        insert into migration_lock (id) values (1) on conflict do nothing`),
      )
      return
    } catch (error) {
      if (tries === 10 || !isAlreadyThere(error)) throw error
    }
  }
}
