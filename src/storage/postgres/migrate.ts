import {
  appliedMigrations,
  isApplied,
  type Migration,
  MigrationRefusal,
  migrateAtOnce,
  missingOf,
  type Step,
  stepsOf,
  versionTable,
} from '../migrate.ts'
import { sql } from '../sql.ts'
import { lockMigrations } from './migration-lock.ts'
import { MigrationSession } from './migration-session.ts'

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
  await using lock = await lockMigrations(url, tell)
  await session.script(versionTable)
  const applied = await session.query(appliedMigrations)
  if (applied.length === 0) return await session.transact(() => session.drive(migrateAtOnce(migrations)))
  const missing = missingOf(migrations, applied)
  await session.script(progressTable)
  for (const migration of missing) {
    const named = `Migration ${migration.version} (${migration.name})`
    await migrateInSteps(session, migration, async work => {
      lock.check()
      return await session.transactWhenFree(work, () => tell(`${named} waits for other transactions.`))
    })
    tell(`${named} is applied.`)
  }
  return missing
}

/** A start with nothing to migrate takes no lock. */
async function isUpToDate(session: MigrationSession, migrations: readonly Migration[]): Promise<boolean> {
  const [table] = await session.query(sql`select to_regclass('schema_migrations')`)
  return table?.[0] !== null && missingOf(migrations, await session.query(appliedMigrations)).length === 0
}

const progressTable = `create table if not exists migration_progress (
  version integer primary key, step integer not null, after bigint not null)`

/** `persist` runs work in a transaction of its own. */
async function migrateInSteps(
  session: MigrationSession,
  migration: Migration,
  persist: <Outcome>(work: () => Promise<Outcome>) => Promise<Outcome>,
): Promise<void> {
  const { version } = migration
  const record = (step: number, after: number) =>
    session.query(sql`insert into migration_progress (version, step, after) values (${version}, ${step}, ${after})
                      on conflict (version) do update set step = excluded.step, after = excluded.after`)
  const [progress] = await session.query(sql`select step, after from migration_progress where version = ${version}`)
  const [first = 0, ...rest] = (progress ?? []).map(Number)
  let [after = 0] = rest
  const steps = stepsOf(migration)
  for (let at = first; at < steps.length; at++, after = 0) {
    const step = steps[at] as Step
    if (step.kind === 'alone') {
      await session.runAlone(step.statements)
      await record(at + 1, 0)
    } else {
      for (let from: number | undefined = after; from !== undefined; ) {
        const start: number = from
        from = await persist(async () => {
          const last = await run(session, step, start)
          await record(last === undefined ? at + 1 : at, last ?? 0)
          return last
        })
      }
    }
  }
  await session.query(isApplied(migration))
}

/** Returns the id that the step has come to, if it has not come to its end. */
async function run(session: MigrationSession, step: Step, after: number): Promise<number | undefined> {
  if (step.kind === 'run') return (await session.drive(step.mend(after))).last
  await session.script(step.statements)
  return undefined
}

/** Other encodings lack characters that users send, or, like SQL_ASCII, count bytes instead of characters. */
async function requireUtf8(session: MigrationSession): Promise<void> {
  const [row] = await session.query(sql`show server_encoding`)
  if (row?.[0] !== 'UTF8')
    throw new MigrationRefusal(`The database has the encoding ${row?.[0]}. Create one with the encoding UTF8.`)
}
