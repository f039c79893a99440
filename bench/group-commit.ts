import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadMigrations } from '../src/storage/migrate.ts'
import type { Statement } from '../src/storage/sql.ts'
import { SqliteEngine } from '../src/storage/sqlite.ts'
import { SqliteConnection } from '../src/storage/sqlite-connection.ts'
import { migrateSqlite } from '../src/storage/sqlite-file.ts'
import { catalogue, like, payment, preparation } from './verbs.ts'

// Durable writes per second, one commit each against 64 clients whose commits are shared. Interleaved in one run.

const rounds = 7
const roundMs = 700
const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'duet-bench-'))
const path = join(folder, 'duet.db')
migrateSqlite(path, loadMigrations(join(import.meta.dirname, '..', 'migrations', 'sqlite')))
const batches: number[] = []
const observer = { read() {}, write() {}, commit: (verbs: number) => void batches.push(verbs), trouble: console.error }

using single = new SqliteConnection(path, 'write')
for (const statement of preparation) single.run(statement)
const engine = new SqliteEngine(path, { catalogue, clock: { now: Date.now }, observer })

/** What a service without group commit does: begin, write, commit, the next one. */
function oneCommitEach(statement: (index: number) => Statement): number {
  let count = 0
  for (const end = performance.now() + roundMs; performance.now() < end; count++) {
    single.run(begin)
    single.run(statement(count))
    single.run(commit)
  }
  return (count * 1000) / roundMs
}

async function together(clients: number, write: (index: number) => Promise<unknown>): Promise<number> {
  let count = 0
  const end = performance.now() + roundMs
  const client = async () => {
    while (performance.now() < end) await write(count++)
  }
  await Promise.all(Array.from({ length: clients }, client))
  return (count * 1000) / roundMs
}

const begin = { text: 'begin immediate', values: [] }
const commit = { text: 'commit', values: [] }
const cases = {
  like: {
    statement: (index: number) => like((index % 64) + 1),
    write: (index: number) => engine.write('like', (index % 64) + 1),
  },
  payment: { statement: () => payment(100), write: () => engine.write('pay', 100) },
}

for (const [name, { statement, write }] of Object.entries(cases)) {
  const rates = { 'one commit each': [] as number[], '1 client': [] as number[], '64 clients': [] as number[] }
  let verbsPerCommit = 0
  for (let round = 0; round < rounds; round++) {
    rates['one commit each'].push(oneCommitEach(statement))
    rates['1 client'].push(await together(1, write))
    batches.length = 0
    rates['64 clients'].push(await together(64, write))
    verbsPerCommit = batches.reduce((sum, verbs) => sum + verbs, 0) / batches.length
  }
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
  const alone = median(rates['one commit each'])
  for (const [way, values] of Object.entries(rates)) {
    const rate = median(values)
    const perSecond = Math.round(rate).toString().padStart(8)
    console.log(
      `${name.padEnd(8)} ${way.padEnd(16)} ${perSecond} durable/s  ${(rate / alone).toFixed(1).padStart(5)} x`,
    )
  }
  console.log(`${name.padEnd(8)} verbs per commit at 64 clients: ${verbsPerCommit.toFixed(1)}`)
}
await engine[Symbol.asyncDispose]()
rmSync(folder, { recursive: true, force: true })
