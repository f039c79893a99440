import type { Engine } from '../../src/storage/engine.ts'
import type { Migration } from '../../src/storage/migrate.ts'
import type { EngineKind, OpenOptions, TestDatabase } from '../support/engines.ts'
import { migrationsOf } from '../support/templates.ts'
import { catalogue, type verbs } from './contract-verbs.ts'

/** The tables that the verbs for tests write. COMMIT checks the foreign key, so there only the COMMIT fails. */
const notes: Migration = {
  version: 9999,
  name: 'notes',
  script: `create table notes (key text primary key, value text not null);
           create table children (parent text not null references notes (key) deferrable initially deferred)`,
  checksum: 'notes',
}

export async function databaseWithNotes(kind: EngineKind): Promise<TestDatabase> {
  const database = await kind.create()
  await database.migrate([...migrationsOf(kind.kind), notes])
  return database
}

export interface Notes extends AsyncDisposable {
  readonly database: TestDatabase
  readonly engine: Engine<typeof verbs>
}

/** An engine on a new database with these tables. */
export async function openNotes(kind: EngineKind, options?: OpenOptions): Promise<Notes> {
  const database = await databaseWithNotes(kind)
  const engine = database.open(catalogue, options)
  const dispose = async () => {
    await engine[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  }
  return { database, engine, [Symbol.asyncDispose]: dispose }
}
