import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Row, type Statement, sql } from './sql.ts'

export interface Migration {
  readonly version: number
  readonly name: string
  readonly script: string
  readonly checksum: string
}

/** What a migration runs on: a connection that holds the migration lock, inside one transaction. */
export interface MigrationSession {
  execute(script: string): Promise<void>
  query(statement: Statement): Promise<readonly Row[]>
}

/** Why a database cannot be served by this program; the sentence is for the operator's terminal. */
export class MigrationRefusal extends Error {
  override name = 'MigrationRefusal'
}

/** Applies what is missing, in order, all or nothing. Returns what it applied. */
export async function migrate(
  session: MigrationSession,
  migrations: readonly Migration[],
): Promise<readonly Migration[]> {
  await session.execute(
    `create table if not exists schema_migrations (
       version integer primary key, name text not null, checksum text not null, applied_at text not null)`,
  )
  const applied = await session.query(sql`select version, name, checksum from schema_migrations order by version`)
  const missing = unapplied(migrations, applied)
  for (const { version, name, script, checksum } of missing) {
    await session.execute(script)
    await session.query(
      sql`insert into schema_migrations (version, name, checksum, applied_at)
          values (${version}, ${name}, ${checksum}, ${new Date().toISOString()})`,
    )
  }
  return missing
}

function unapplied(migrations: readonly Migration[], applied: readonly Row[]): readonly Migration[] {
  applied.forEach(([version, name, checksum], index) => {
    const known = migrations[index]
    if (known === undefined) {
      throw new MigrationRefusal(
        `The database is newer than this program: it has migration ${version} (${name}), this program knows ${migrations.length}. Run the newer version.`,
      )
    }
    if (known.version !== version || known.checksum !== checksum) {
      throw new MigrationRefusal(
        `Migration ${known.version} (${known.name}) was changed after it was applied to this database. Restore the original file and add a new migration instead.`,
      )
    }
  })
  return migrations.slice(applied.length)
}

/** Reads `0001_init.sql`, `0002_….sql`, … The numbers must run from 1 without a gap. */
export function loadMigrations(directory: string): readonly Migration[] {
  return readdirSync(directory)
    .filter(file => file.endsWith('.sql'))
    .sort()
    .map((file, index) => {
      const [, digits, name] = /^(\d{4})_([a-z0-9-]+)\.sql$/.exec(file) ?? []
      if (name === undefined || Number(digits) !== index + 1) {
        throw new Error(`${file}: migrations are named 0001_words.sql, 0002_words.sql, … without a gap`)
      }
      const script = readFileSync(join(directory, file), 'utf8').replaceAll('\r\n', '\n')
      return { version: index + 1, name, script, checksum: createHash('sha256').update(script).digest('hex') }
    })
}
