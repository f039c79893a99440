import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loginKeyOf } from '../core/users/user.ts'
import { type Row, type Statement, sql, type Value } from './sql.ts'
import type { Steps } from './verb.ts'

export interface Migration {
  readonly version: number
  readonly name: string
  readonly script: string
  readonly checksum: string
}

/** One step of a migration, run like a verb's: a statement, or a script of several statements without values. */
export type MigrationStep = Statement | { readonly script: string }

/** The database does not fit this version of the program. The message is shown to the operator. */
export class MigrationRefusal extends Error {
  override name = 'MigrationRefusal'
}

/**
 * Applies the missing migrations in order and returns them. The caller must hold the migration lock and run all steps
 * in one transaction, so that either all of them take effect or none.
 */
export function* migrate(
  migrations: readonly Migration[],
): Generator<MigrationStep, readonly Migration[], readonly Row[]> {
  yield {
    script: `create table if not exists schema_migrations (
      version integer primary key, name text not null, checksum text not null, applied_at text not null)`,
  }
  const applied = yield sql`select version, name, checksum from schema_migrations order by version`
  const missing = unapplied(migrations, applied)
  for (const { version, name, script, checksum } of missing) {
    yield { script }
    yield* completions[name]?.() ?? []
    yield sql`insert into schema_migrations (version, name, checksum, applied_at)
              values (${version}, ${name}, ${checksum}, ${new Date().toISOString()})`
  }
  return missing
}

/** What some migrations do after their script, because SQL cannot do it, or not alike on both engines. By name. */
const completions: Readonly<Record<string, () => Steps<void>>> = { 'list-filters': fillEmailKeys }

/** The script has filled the rows whose e-mails are ASCII, in which only JavaScript and SQL agree about lower case. */
function* fillEmailKeys(): Steps<void> {
  for (let last: Value = 0; ; ) {
    const rows: readonly Row[] = yield sql`select id, email from users where email_key is null and id > ${last}
                                           order by id limit ${filledTogether}`
    for (const [id = null, email] of rows) {
      yield sql`update users set email_key = ${loginKeyOf(String(email))} where id = ${id}`
      last = id
    }
    if (rows.length < filledTogether) return
  }
}

const filledTogether = 1_000

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

/** Reads `0001_init.sql`, `0002_….sql`, … The numbers must start at 1 and have no gaps. */
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
