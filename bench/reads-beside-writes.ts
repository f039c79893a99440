import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadMigrations } from '../src/storage/migrate.ts'
import { type Statement, sql } from '../src/storage/sql.ts'
import { SqliteConnection } from '../src/storage/sqlite/connection.ts'
import { SqliteEngine } from '../src/storage/sqlite/engine.ts'
import { migrateSqlite } from '../src/storage/sqlite/file.ts'
import { commitTogether } from '../src/storage/sqlite/group-commit.ts'
import { timeoutsOf } from '../src/storage/timeouts.ts'
import { onBothDisks } from './disks.ts'
import { catalogue, verbs } from './verbs.ts'

// Reads while 64 clients write: commits in a thread of their own (what we do) against commits on the thread that reads,
// on the disk as it is and with 2 ms added to every synchronisation with it (strace). Interleaved in one run.

const roundMs = 600
const rounds = 5
const writers = 64

interface Round {
  readonly reads: number
  readonly writes: number
  /** The longest that any read had to wait for its turn, in milliseconds. */
  readonly longest: number
}

const readStatement: Statement = sql`select id, amount_cents from payments where id = 1`

/** One read a turn of the event loop, as requests would come. */
async function readUntil(end: number, readOne: () => unknown): Promise<{ reads: number; longest: number }> {
  let reads = 0
  let longest = 0
  for (let last = performance.now(); last < end; reads++) {
    await new Promise(setImmediate)
    await readOne()
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
  }
  return { reads, longest }
}

async function inAThread(path: string): Promise<Round> {
  await using engine = new SqliteEngine(path, {
    catalogue,
    clock: { now: Date.now },
    observer,
    timeouts: timeoutsOf(1_200),
  })
  await engine.ping()
  const end = performance.now() + roundMs
  let writes = 0
  const writing = Array.from({ length: writers }, async () => {
    for (; performance.now() < end; writes++) await engine.write('pay', 100)
  })
  const read = await readUntil(end, () => engine.read(readStatement))
  await Promise.all(writing)
  return { ...read, writes }
}

async function onTheSameThread(path: string): Promise<Round> {
  using reader = new SqliteConnection(path, 'read')
  using writer = new SqliteConnection(path, 'write')
  const end = performance.now() + roundMs
  const jobs = Array.from({ length: writers }, (_, id) => [id, 'pay', [100 as never], 0] as const)
  let writes = 0
  let committing = true
  const commitNext = () => {
    if (performance.now() >= end) {
      committing = false
      return
    }
    writes += commitTogether(writer, verbs, jobs, () => []).length
    setImmediate(commitNext)
  }
  setImmediate(commitNext)
  const read = await readUntil(end, () => reader.run(readStatement))
  while (committing) await new Promise(setImmediate)
  return { ...read, writes }
}

const observer = { read() {}, write() {}, commit() {}, trouble: console.error }

async function measure(): Promise<void> {
  const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'duet-bench-'))
  const path = join(folder, 'duet.db')
  migrateSqlite(path, loadMigrations(join(import.meta.dirname, '..', 'migrations', 'sqlite')))
  const results = { 'commits in a thread': [] as Round[], 'commits on the same thread': [] as Round[] }
  for (let round = 0; round < rounds; round++) {
    results['commits in a thread'].push(await inAThread(path))
    results['commits on the same thread'].push(await onTheSameThread(path))
  }
  rmSync(folder, { recursive: true, force: true })
  for (const [name, list] of Object.entries(results)) {
    const median = (of: (round: Round) => number) => list.map(of).toSorted((a, b) => a - b)[rounds >> 1] ?? 0
    const perSecond = (count: number) =>
      Math.round((count * 1000) / roundMs)
        .toString()
        .padStart(7)
    console.log(
      `  ${name.padEnd(27)} ${perSecond(median(({ reads }) => reads))} reads/s ` +
        `${perSecond(median(({ writes }) => writes))} durable writes/s  longest wait of a read ` +
        `${median(({ longest }) => longest)
          .toFixed(1)
          .padStart(5)} ms`,
    )
  }
}

await onBothDisks(import.meta.filename, measure)
