import { join } from 'node:path'
import pg from 'pg'
import { loadMigrations, type Migration } from '../../src/storage/migrate.ts'
import { migratePostgres } from '../../src/storage/postgres/migrate.ts'
import { migrateSqlite } from '../../src/storage/sqlite/file.ts'
import type { PostgresServer } from './postgres.ts'

/** The file name of the SQLite template, in the folder of the run. */
export const sqliteTemplate = 'template.db'

/** Creates databases with the whole schema, because copying one is faster than migrating one. */
export async function createTemplates(folder: string, server: PostgresServer | undefined): Promise<void> {
  const path = join(folder, sqliteTemplate)
  migrateSqlite(path, migrationsOf('sqlite'))
  process.env.DUET_TEST_SQLITE = path
  if (server === undefined) return
  await executeOn(server.url, 'create database template_duet')
  await migratePostgres(databaseOn(server.url, 'template_duet'), migrationsOf('postgres'))
  process.env.DUET_TEST_POSTGRES = server.url
}

/** The path of the SQLite template. */
export const sqliteTemplatePath = (): string => required('DUET_TEST_SQLITE')

/** A new database on the server of the run: with the whole schema, or empty. */
export async function newPostgresDatabase(contents: 'schema' | 'nothing'): Promise<string> {
  const server = required('DUET_TEST_POSTGRES')
  const name = `test_${process.pid}_${++databases}`
  await executeOn(server, `create database ${name}${contents === 'schema' ? ' template template_duet' : ''}`)
  return databaseOn(server, name)
}

export async function dropPostgresDatabase(url: string): Promise<void> {
  await executeOn(required('DUET_TEST_POSTGRES'), `drop database ${new URL(url).pathname.slice(1)} with (force)`)
}

let databases = 0

export const migrationsOf = (kind: 'sqlite' | 'postgres'): readonly Migration[] =>
  loadMigrations(join(import.meta.dirname, '..', '..', 'migrations', kind))

/** Runs statements on a PostgreSQL database. */
export async function executeOn(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

const databaseOn = (server: string, name: string): string => server.replace(/postgres$/, name)

function required(name: string): string {
  const value = process.env[name]
  if (value === undefined) throw new Error('Run tests by `npm run test:only -- <file>`')
  return value
}
