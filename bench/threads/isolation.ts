import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BenchServer } from '../core/server.ts'
import { fillSqlite } from '../plant.ts'
import { drive, textOf, type Workload } from './drive.ts'

/** Costs 990 of 1,000. */
const expensive = '{users(limit:45){posts(limit:20){content}}}'
const heavy: Workload = {
  name: 'an expensive operation',
  line: () => 'POST /graphql',
  headers: number => ({ 'Content-Type': 'application/json', 'X-Request-Id': `expensive-${number}` }),
  body: () => JSON.stringify({ query: expensive }),
}
const light: Workload = {
  name: 'a read',
  line: () => 'GET /users/1',
  headers: number => ({ 'X-Request-Id': number }),
}

/** The slowest percent of reads, on the thread of a client that sends expensive reads one after the other, and on others. */
export async function printIsolation(threads: number): Promise<void> {
  const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'duet-bench-'))
  try {
    const path = join(folder, 'duet.db')
    fillSqlite(path, 20_000)
    /** The thread that answered each read, by request id. */
    const served = new Map<string, number>()
    let busy: number | undefined
    await using server = await BenchServer.start(
      [join(import.meta.dirname, '..', '..', 'bin', 'duet.mjs'), 'serve'],
      { PORT: '0', DATABASE_URL: `sqlite:${path}`, RATE_LIMIT_MAX: '0', DEMO_DATA: 'false', THREADS: String(threads) },
      text => {
        for (const [, thread, id = ''] of text.matchAll(/"thread":(\d+),"requestId":"([^"]+)"/g)) {
          if (id.startsWith('expensive')) busy = Number(thread)
          else served.set(id, Number(thread))
        }
      },
    )
    const readers = Array.from({ length: 8 * threads }, () => new Connection(server.port))
    for (const each of readers) await each.send(light)
    await drive(server.port, heavy, 1, 2)
    await Promise.all(readers.map(reader => reader.measure(2_000)))
    const alone = await Promise.all(readers.map(reader => reader.measure(5_000)))
    // In a process of its own: work of this one would be measured as waiting.
    const loop = drive(server.port, heavy, 1, 7)
    await new Promise(resolve => setTimeout(resolve, 1_000))
    const beside = await Promise.all(readers.map(reader => reader.measure(5_000)))
    const { answers, seconds } = await loop
    await new Promise(resolve => setTimeout(resolve, 200)) // its log is written a moment later
    const isBusy = (index: number) => served.get(readers[index]?.lastId ?? '') === busy
    console.log(`${(answers / seconds).toFixed(0)} expensive operations a second on one thread; p50 and p99 of reads`)
    for (const [name, times] of [
      ['without them', alone],
      ['beside them', beside],
    ] as const) {
      const own = times.filter((_, index) => isBusy(index)).flat()
      const others = times.filter((_, index) => !isBusy(index)).flat()
      console.log(`  ${name.padEnd(14)} same thread ${percentiles(own)}  other threads ${percentiles(others)}`)
    }
    for (const reader of readers) reader[Symbol.dispose]()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function percentiles(times: readonly number[]): string {
  const sorted = times.toSorted((one, other) => one - other)
  const at = (share: number) => `${(sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(2)} ms`.padStart(9)
  return `${at(0.5)} ${at(0.99)}`
}

let lastId = 0

/** One connection, which stays with its thread. */
class Connection implements Disposable {
  readonly #socket: Socket
  lastId = ''
  #received = Buffer.alloc(0)
  #resolve: () => void = () => {}

  constructor(port: number) {
    this.#socket = connect(port, '127.0.0.1').setNoDelay()
    this.#socket.on('data', data => {
      this.#received = Buffer.concat([this.#received, data])
      const head = this.#received.indexOf('\r\n\r\n')
      const length = /content-length: (\d+)/i.exec(this.#received.toString('latin1', 0, head))?.[1]
      if (head < 0 || this.#received.length < head + 4 + Number(length)) return
      if (this.#received[9] !== 0x32) throw new Error(this.#received.toString())
      this.#received = Buffer.alloc(0)
      this.#resolve()
    })
  }

  async send(workload: Workload): Promise<void> {
    this.lastId = `bench-${++lastId}`
    const answered = new Promise<void>(resolve => {
      this.#resolve = resolve
    })
    this.#socket.write(textOf(workload, this.lastId))
    await answered
  }

  /** Sends reads at a moderate pace, and returns how long each took. */
  async measure(ms: number): Promise<number[]> {
    const times: number[] = []
    for (const end = performance.now() + ms; performance.now() < end; ) {
      const begun = performance.now()
      await this.send(light)
      times.push(performance.now() - begun)
      await new Promise(resolve => setTimeout(resolve, 10))
    }
    return times
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }
}
