import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BenchServer } from '../core/server.ts'
import { fillSqlite } from '../plant.ts'
import { textOf, type Workload } from './drive.ts'

const expensive = '{posts(limit:11,offset:19000){id content author{name} comments(limit:10){id text author{name}}}}'
const heavy: Workload = {
  name: 'an expensive operation',
  line: () => 'POST /graphql',
  headers: number => ({ 'Content-Type': 'application/json', 'X-Request-Id': number }),
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
    /** The thread that answered each request, by request id. */
    const served = new Map<string, number>()
    await using server = await BenchServer.start(
      [join(import.meta.dirname, '..', '..', 'bin', 'duet.mjs'), 'serve'],
      { PORT: '0', DATABASE_URL: `sqlite:${path}`, RATE_LIMIT_MAX: '0', DEMO_DATA: 'false', THREADS: String(threads) },
      text => {
        for (const [, thread, id] of text.matchAll(/"thread":(\d+),"requestId":"([^"]+)"/g))
          served.set(String(id), Number(thread))
      },
    )
    using hog = new Connection(server.port)
    const readers = Array.from({ length: 8 * threads }, () => new Connection(server.port))
    for (const each of [hog, ...readers]) await each.send(light)
    for (let times = 0; times < 300; times++) await hog.send(heavy)
    await Promise.all(readers.map(reader => reader.measure(2_000)))
    const alone = await Promise.all(readers.map(reader => reader.measure(5_000)))
    const stop = new AbortController()
    const loop = (async () => {
      let count = 0
      for (; !stop.signal.aborted; count++) await hog.send(heavy)
      return count
    })()
    const beside = await Promise.all(readers.map(reader => reader.measure(5_000)))
    stop.abort()
    const operations = await loop
    await new Promise(resolve => setTimeout(resolve, 200)) // its log is written a moment later
    const busy = served.get(hog.lastId)
    const isBusy = (index: number) => served.get(readers[index]?.lastId ?? '') === busy
    console.log(`${(operations / 5).toFixed(0)} expensive operations a second on one thread; p50 and p99 of reads`)
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
