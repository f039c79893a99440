import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { generateKeySet } from '../src/security/keys.ts'
import { loadMigrations } from '../src/storage/migrate.ts'
import { migratePostgres } from '../src/storage/postgres/engine.ts'
import { planning } from '../src/storage/postgres/pool.ts'
import { PostgresServer } from '../test/support/postgres.ts'
import { BenchServer, load } from './load.ts'
import { fillSqlite, fillStatements } from './plant.ts'
import { tenPostsRequest } from './ten-posts.ts'

// The query for ten posts over a thousand and over a million of them, on both engines: time per request, one at a time,
// interleaved in one run.

const sizes = [1000, Number(process.env.BENCH_POSTS ?? 1_000_000)]
const rounds = 15
const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'duet-bench-'))
const program = [join(import.meta.dirname, '..', 'bin', 'duet.mjs'), 'serve']
const settings = { PORT: '0', LOG_LEVEL: 'warn', RATE_LIMIT_MAX: '0', DEMO_DATA: 'false' }
{
  await using stack = new AsyncDisposableStack()
  for (const kind of ['sqlite', 'postgres'] as const) {
    const urls = kind === 'sqlite' ? sizes.map(sqlite) : await postgres(stack)
    const keys = { TOKEN_KEYS: await generateKeySet() }
    const servers: BenchServer[] = []
    for (const url of urls) {
      servers.push(stack.use(await BenchServer.start(program, { ...settings, ...keys, DATABASE_URL: url })))
    }
    const times = servers.map((): number[] => [])
    for (const { port } of servers) await load(port, tenPostsRequest(), 1, 2000)
    for (let round = 0; round < rounds; round++) {
      for (const [index, { port }] of servers.entries()) {
        times[index]?.push(400_000 / (await load(port, tenPostsRequest(), 1, 400)))
      }
    }
    const [few = 0, many = 0] = times.map(list => list.toSorted((a, b) => a - b)[rounds >> 1] ?? 0)
    const of = (size: number | undefined, time: number) => `${time.toFixed(0)} µs over ${size}`
    console.log(`${kind.padEnd(9)} ${of(sizes[0], few)}, ${of(sizes[1], many)}: ${(many / few).toFixed(2)} x`)
  }
}
rmSync(folder, { recursive: true, force: true })

function sqlite(posts: number): string {
  const path = join(folder, `${posts}.db`)
  fillSqlite(path, posts)
  return `sqlite:${path}`
}

async function postgres(stack: AsyncDisposableStack): Promise<string[]> {
  const server = stack.use(await PostgresServer.start())
  const urls: string[] = []
  for (const posts of sizes) {
    const admin = new pg.Client({ connectionString: server.url })
    await admin.connect()
    await admin.query(`create database posts_${posts}`)
    await admin.end()
    const url = new URL(server.url)
    url.pathname = `/posts_${posts}`
    await migratePostgres(url.href, loadMigrations(join(import.meta.dirname, '..', 'migrations', 'postgres')))
    const client = new pg.Client({ connectionString: url.href })
    await client.connect()
    for (const statement of fillStatements('postgres', posts)) await client.query(statement)
    if (process.env.BENCH_EXPLAIN) await explain(client)
    await client.end()
    urls.push(url.href)
  }
  return urls
}

/** The generic plan of the statement, as the service runs it. */
async function explain(client: pg.Client): Promise<void> {
  const { compile } = await import('../src/storage/select/select.ts')
  const { postgresDialect } = await import('../src/storage/select/dialect.ts')
  const { tenPostsSelection, tenPostsValues } = await import('./ten-posts.ts')
  for (const [name, value] of Object.entries(planning)) await client.query(`set ${name} = ${value}`)
  await client.query(`prepare ten as ${compile(tenPostsSelection, postgresDialect)}`)
  const { rows } = await client.query(`explain (analyze, buffers) execute ten(${tenPostsValues().join(', ')})`)
  console.log(rows.map(row => row['QUERY PLAN']).join('\n'))
}
