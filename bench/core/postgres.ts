import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { loadMigrations } from '../../src/storage/migrate.ts'
import { migratePostgres } from '../../src/storage/postgres/migrate.ts'
import { PostgresServer } from '../../test/support/postgres.ts'
import { childrenOf, parentOf } from './processes.ts'

/** A throw-away PostgreSQL server with several databases. Its settings are the default ones, with more shared memory. */
export class PostgresDatabases {
  readonly #url: string
  readonly #postmaster: number

  static isInstalled(): boolean {
    return existsSync('/usr/lib/postgresql') || spawnSync('postgres', ['--version']).error === undefined
  }

  static async start(stack: AsyncDisposableStack): Promise<PostgresDatabases> {
    const settings = { shared_buffers: '512MB', fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on' }
    const { url } = stack.use(await PostgresServer.start(settings))
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    const { rows } = await client.query('select pg_backend_pid() as pid')
    const postmaster = parentOf(rows[0].pid)
    await client.end()
    if (postmaster === undefined) throw new Error('The processes of PostgreSQL are not found')
    return new PostgresDatabases(url, postmaster)
  }

  private constructor(url: string, postmaster: number) {
    this.#url = url
    this.#postmaster = postmaster
  }

  /** The processes of the server. */
  readonly processes = (): readonly number[] => childrenOf(this.#postmaster)

  /** A database with the tables of Duet and what the statements fill in. Returns its address. */
  async create(name: string, statements: readonly string[]): Promise<string> {
    await run(this.#url, [`create database ${name}`])
    const url = this.#urlOf(name)
    await migratePostgres(url, loadMigrations(join(import.meta.dirname, '..', '..', 'migrations', 'postgres')))
    await run(url, [...(await withoutIndexes(url, statements)), 'vacuum analyze', 'checkpoint'])
    return url
  }

  async copy(from: string, name: string, statements: readonly string[] = []): Promise<string> {
    await run(this.#url, [`create database ${name} template ${from}`])
    await run(this.#urlOf(name), statements)
    return this.#urlOf(name)
  }

  #urlOf(name: string): string {
    const url = new URL(this.#url)
    url.pathname = `/${name}`
    return url.href
  }
}

/** Rows are added faster without the checks of references, and when the indexes are made after them. */
async function withoutIndexes(url: string, statements: readonly string[]): Promise<readonly string[]> {
  const indexes = await run(url, [
    `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition from pg_index
     where indrelid in ('users'::regclass, 'posts'::regclass, 'comments'::regclass)
       and not exists (select from pg_constraint where conindid = indexrelid)`,
  ])
  return [
    "set session_replication_role = 'replica'",
    "set maintenance_work_mem = '256MB'",
    ...indexes.map(({ name }) => `drop index ${name}`),
    ...statements,
    ...indexes.map(({ definition }) => String(definition)),
  ]
}

/** Returns the rows of the last statement. */
async function run(url: string, statements: readonly string[]): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    let rows: readonly Readonly<Record<string, unknown>>[] = []
    for (const statement of statements) ({ rows } = await client.query(statement))
    return rows
  } finally {
    await client.end()
  }
}
