import { setTimeout as delay } from 'node:timers/promises'
import {
  appliedMigrations,
  isApplied,
  type Migration,
  missingOf,
  type Step,
  stepsOf,
  versionTable,
} from '../migrate.ts'
import { sql } from '../sql.ts'
import { MigrationSession } from './migration-session.ts'
import { begin, drive } from './transact.ts'

/**
 * Applies the missing migrations while instances of an earlier version serve. Nothing keeps these waiting for long: a lock
 * that is not free within a moment is given up and tried again, indexes are built beside writes, and rows are filled
 * some at a time. Each step is recorded with its effect, so that an interrupted migration goes on where it was. Of
 * several instances, one migrates and the others wait. `tell` gets lines for the operator.
 */
export async function migratePostgres(
  url: string,
  migrations: readonly Migration[],
  tell: (line: string) => void = () => {},
): Promise<readonly Migration[]> {
  await using session = await MigrationSession.open(url)
  await requireUtf8(session)
  if (await isUpToDate(session, migrations)) return []
  await using _lock = await lockMigrations(url, tell)
  await session.script(`${versionTable}; ${progressTable}`)
  const applied = await session.query(appliedMigrations)
  const missing = missingOf(migrations, applied)
  for (const migration of missing) {
    const named = `Migration ${migration.version} (${migration.name})`
    // In a new database there is nobody to wait for, and indexes are built at once.
    const script = applied.length === 0 ? migration.script.replaceAll(' concurrently', '') : migration.script
    await migrateInSteps(session, { ...migration, script }, () => tell(`${named} waits for other transactions.`))
  }
  return missing
}

/** A start with nothing to migrate takes no lock. */
async function isUpToDate(session: MigrationSession, migrations: readonly Migration[]): Promise<boolean> {
  const [table] = await session.query(sql`select to_regclass('schema_migrations')`)
  return table?.[0] !== null && missingOf(migrations, await session.query(appliedMigrations)).length === 0
}

/**
 * Waits until no other instance migrates, and keeps others from it until it is disposed. Its transaction stays open but
 * runs nothing: an index that is being built waits for statements that run. PostgreSQL ends the transaction when it has
 * heard nothing for a minute, so that an instance whose machine is gone stops nobody.
 */
async function lockMigrations(url: string, tell: (line: string) => void): Promise<AsyncDisposable> {
  await using parts = new AsyncDisposableStack()
  const session = parts.use(await MigrationSession.open(url))
  await session.script(`${begin.text}; set local idle_in_transaction_session_timeout = '60s'`)
  // Without a parameter: with one, the statement would stay open, and indexes would wait for it.
  const tryLock = sql`select case when pg_try_advisory_xact_lock(1685415284) then 1 end`
  for (let tries = 0; (await session.query(tryLock))[0]?.[0] !== 1; tries++) {
    if (tries % 100 === 5) tell('Another instance migrates the database. Waiting for it.')
    await delay(100)
  }
  const timer = setInterval(() => session.script('select 1').catch(() => {}), 10_000)
  parts.defer(() => clearInterval(timer))
  return parts.move()
}

const progressTable = `create table if not exists migration_progress (
  version integer primary key, step integer not null, after bigint not null)`

async function migrateInSteps(session: MigrationSession, migration: Migration, waits: () => void): Promise<void> {
  const { version } = migration
  const record = (step: number, after: number) =>
    session.query(sql`insert into migration_progress (version, step, after) values (${version}, ${step}, ${after})
                      on conflict (version) do update set step = excluded.step, after = excluded.after`)
  const [progress] = await session.query(sql`select step, after from migration_progress where version = ${version}`)
  let [at = 0, after = 0] = (progress ?? []).map(Number)
  for (const step of stepsOf(migration).slice(at)) {
    if (step.kind === 'alone') {
      await session.runAlone(step.statements)
      await record(at + 1, 0)
    } else {
      do
        after = await session.transactWhenFree(waits, async () => {
          const last = await run(session, step, after)
          await record(last === 0 ? at + 1 : at, last)
          return last
        })
      while (after > 0)
    }
    at++
  }
  await session.query(isApplied(migration))
}

/** Returns the id to go on after, or 0 at the end. */
async function run(session: MigrationSession, step: Step, after: number): Promise<number> {
  if (step.kind === 'run') return (await drive(step.mend(after), statement => session.query(statement))).last
  await session.script(step.statements)
  return 0
}

/** Other encodings lack characters that users send, or, like SQL_ASCII, count bytes instead of characters. */
async function requireUtf8(session: MigrationSession): Promise<void> {
  const [row] = await session.query(sql`show server_encoding`)
  if (row?.[0] !== 'UTF8')
    throw new Error(`The database has the encoding ${row?.[0]}. Create one with the encoding UTF8.`)
}
