import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Mended, mends } from './entities/mends.ts'
import { type Row, type Statement, sql } from './sql.ts'
import type { Steps } from './verb.ts'

export type Migration = ReturnType<typeof loadMigrations>[number]

/**
 * A part of a migration's script, which begins at a line `-- step: …`:
 * - `together` (also without such a line): statements that run in one transaction;
 * - `alone`: statements that wait for other transactions, and so cannot be part of one;
 * - `run <name>`: what SQL cannot do, or not in one transaction: a mend goes over the rows that exist, some at a time.
 */
export type Step =
  | { readonly kind: 'together' | 'alone'; readonly statements: string }
  | { readonly kind: 'run'; readonly mend: (after: number) => Steps<Mended> }

export function stepsOf({ script }: Migration): readonly Step[] {
  const [first = '', ...parts] = script.split(/^-- step: /m)
  return [{ kind: 'together', statements: first }, ...parts.map(stepOf)]
}

function stepOf(part: string): Step {
  const end = part.indexOf('\n')
  const [kind = '', name = ''] = part.slice(0, end).split(' ')
  if (kind === 'together' || kind === 'alone') return { kind, statements: part.slice(end) }
  const mend = Object.entries(mends).find(([known]) => known === name)?.[1]
  if (kind !== 'run' || mend === undefined) throw new Error(`A migration has an unknown step: ${part.slice(0, end)}`)
  return { kind, mend }
}

export const versionTable = `create table if not exists schema_migrations (
  version integer primary key, name text not null, checksum text not null, applied_at text not null)`
export const appliedMigrations = sql`select version, name, checksum from schema_migrations order by version`

export function isApplied({ version, name, checksum }: Migration): Statement {
  return sql`insert into schema_migrations (version, name, checksum, applied_at)
             values (${version}, ${name}, ${checksum}, ${new Date().toISOString()})`
}

/** Refuses a database that does not fit this version of the program. The operator is shown the message. */
export function missingOf(migrations: readonly Migration[], applied: readonly Row[]): readonly Migration[] {
  applied.forEach(([version, name, checksum], index) => {
    const known = migrations[index]
    if (known === undefined) {
      throw new Error(
        `The database is newer than this program: it has migration ${version} (${name}), this program knows ${migrations.length}. Run the newer version.`,
      )
    }
    if (known.version !== version || known.checksum !== checksum) {
      throw new Error(
        `Migration ${known.version} (${known.name}) was changed after it was applied to this database. Restore the original file and add a new migration instead.`,
      )
    }
  })
  return migrations.slice(applied.length)
}

/** Reads `0001_init.sql`, `0002_….sql`, … The numbers must start at 1 and have no gaps. */
export function loadMigrations(directory: string) {
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
