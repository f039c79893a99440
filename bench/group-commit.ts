import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadMigrations } from '../src/storage/migrate.ts'
import type { Statement } from '../src/storage/sql.ts'
import { SqliteConnection } from '../src/storage/sqlite/connection.ts'
import { SqliteEngine } from '../src/storage/sqlite/engine.ts'
import { migrateSqlite } from '../src/storage/sqlite/file.ts'
import { timeoutsOf } from '../src/storage/timeouts.ts'
import { onBothDisks } from './disks.ts'
import { catalogue, like, payment, preparation } from './verbs.ts'

// Durable writes per second: 64 clients whose commits are shared, against one client at a time (each write alone in its
// commit) and against a bare loop on one thread without an engine. Interleaved in one run.

const rounds = 7
const roundMs = 500
const batches: number[] = []
const observer = { read() {}, write() {}, commit: (verbs: number) => void batches.push(verbs), trouble: console.error }

async function measure(): Promise<void> {
  const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'duet-bench-'))
  const path = join(folder, 'duet.db')
  migrateSqlite(path, loadMigrations(join(import.meta.dirname, '..', 'migrations', 'sqlite')))
  {
    using bare = new SqliteConnection(path, 'write')
    for (const statement of preparation) bare.run(statement)
    await using engine = new SqliteEngine(path, {
      catalogue,
      clock: { now: Date.now },
      observer,
      timeouts: timeoutsOf(1_200),
    })
    const post = (index: number) => (index % 64) + 1
    await compare('like', {
      bareLoop: () => bareLoop(bare, index => like(post(index))),
      clients: count => clients(count, index => engine.write('like', post(index))),
    })
    await compare('payment', {
      bareLoop: () => bareLoop(bare, () => payment(100)),
      clients: count => clients(count, () => engine.write('pay', 100)),
    })
  }
  rmSync(folder, { recursive: true, force: true })
}

interface Ways {
  bareLoop(): number
  clients(count: number): Promise<number>
}

async function compare(name: string, { bareLoop, clients }: Ways): Promise<void> {
  const rates = { 'a bare loop': [] as number[], '1 client': [] as number[], '64 clients': [] as number[] }
  for (let round = 0; round < rounds; round++) {
    rates['a bare loop'].push(bareLoop())
    rates['1 client'].push(await clients(1))
    batches.length = 0
    rates['64 clients'].push(await clients(64))
  }
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
  const alone = median(rates['1 client'])
  for (const [way, values] of Object.entries(rates)) {
    const rate = median(values)
    const perSecond = Math.round(rate).toString().padStart(8)
    console.log(
      `  ${name.padEnd(8)} ${way.padEnd(12)} ${perSecond} durable/s  ${(rate / alone).toFixed(1).padStart(5)} x`,
    )
  }
  const verbsPerCommit = batches.reduce((sum, verbs) => sum + verbs, 0) / batches.length
  console.log(`  ${name.padEnd(8)} verbs per commit at 64 clients: ${verbsPerCommit.toFixed(1)}`)
}

/** What a service without group commit does: begin, write, commit, the next one. */
function bareLoop(connection: SqliteConnection, statement: (index: number) => Statement): number {
  let count = 0
  for (const end = performance.now() + roundMs; performance.now() < end; count++) {
    connection.run(begin)
    connection.run(statement(count))
    connection.run(commit)
  }
  return (count * 1000) / roundMs
}

async function clients(count: number, write: (index: number) => Promise<unknown>): Promise<number> {
  let written = 0
  const end = performance.now() + roundMs
  const client = async () => {
    while (performance.now() < end) await write(written++)
  }
  await Promise.all(Array.from({ length: count }, client))
  return (written * 1000) / roundMs
}

const begin = { text: 'begin immediate', values: [] }
const commit = { text: 'commit', values: [] }

await onBothDisks(import.meta.filename, measure)
