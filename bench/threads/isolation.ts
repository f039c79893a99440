import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { BenchServer } from '../core/server.ts'
import { fillSqlite } from '../plant.ts'
import { drive, textOf, type Workload } from './drive.ts'

const longPosts = 30
const expensive: readonly Workload[] = [
  operation('Many rows', '{users(limit:45){posts(limit:20){content}}}'), // costs 990 of 1,000
  operation('Long texts', `{posts(limit:${longPosts}){content}}`),
]

/**
 * How long reads take while one client sends expensive operations one after the other. If the machine has few cores, the
 * reads also wait for a core. So the operations are also sent to another server, which takes the same cores: what reads
 * take longer than beside that one is what the service lets them wait. The parts take turns. The system counts how long
 * threads that could run had no core: those that serve, and the one of this client, whose waiting no server can change.
 */
export async function printIsolation(threads: number, rounds: number, seconds: number): Promise<void> {
  const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'duet-bench-'))
  try {
    await using measured = await IsolationServer.start(join(folder, 'measured.db'), threads)
    await using other = await IsolationServer.start(join(folder, 'other.db'), threads)
    const readers = Array.from({ length: 8 * threads }, () => new Reader(measured.port))
    for (const reader of readers) await reader.read()
    for (const workload of expensive) {
      const parts = new Map<string, Part>()
      let rate = 0
      for (let round = -1; round < rounds; round++) {
        for (const busy of [undefined, other, measured]) {
          const loop = busy?.drive(workload, seconds + 2)
          await delay(1_000)
          const before = measured.waits()
          const clientBefore = waitOf('self')
          const times = await Promise.all(readers.map(reader => reader.measure(seconds * 1_000)))
          const after = measured.waits()
          const clientWaited = (waitOf('self') - clientBefore) / times.flat().length
          const { perSecond = 0, thread: busyThread } = (await loop) ?? {}
          if (round < 0) continue // the code is compiled
          rate += perSecond / rounds / 2
          for (const thread of after.keys()) {
            const place = thread === busyThread ? 'beside them on the same thread' : 'beside them on other threads'
            const name = busy === undefined ? 'alone' : busy === other ? 'beside another server' : place
            const part = parts.get(name) ?? { times: [], waited: 0, clientWaited: 0 }
            const own = times.filter((_, index) => measured.threadOf(readers[index]?.firstId) === thread).flat()
            part.times.push(...own)
            part.waited += (after.get(thread) ?? 0) - (before.get(thread) ?? 0)
            part.clientWaited += clientWaited * own.length
            parts.set(name, part)
          }
        }
      }
      console.log(`${workload.name}: ${rate.toFixed(0)} a second`)
      for (const [name, part] of parts) console.log(`  ${name.padEnd(30)} ${textOfPart(part)}`)
    }
    for (const reader of readers) reader[Symbol.dispose]()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Part {
  readonly times: number[]
  /** Milliseconds that the serving threads waited for a core, and the client. */
  waited: number
  clientWaited: number
}

function textOfPart({ times, waited, clientWaited }: Part): string {
  const sorted = times.toSorted((one, other) => one - other)
  const at = (share: number) => `${(sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(2)} ms`
  const perRead = (ms: number) => `${((ms * 1_000) / times.length).toFixed(0)} µs`
  const waits = `waited for a core: server ${perRead(waited)} a read, client ${perRead(clientWaited)}`
  return `${times.length} reads: p50 ${at(0.5)}, p99 ${at(0.99)}; ${waits}`
}

function operation(name: string, query: string): Workload {
  return {
    name,
    line: () => 'POST /graphql',
    headers: number => ({ 'Content-Type': 'application/json', 'X-Request-Id': `expensive-${number}` }),
    body: () => JSON.stringify({ query }),
  }
}

/** A server whose log tells which thread has answered. */
class IsolationServer implements AsyncDisposable {
  readonly port: number
  readonly #server: BenchServer
  readonly #threads: Map<string, number>

  static async start(path: string, threads: number): Promise<IsolationServer> {
    fillSqlite(path, 20_000)
    using database = new DatabaseSync(path)
    const long = `replace(hex(zeroblob(30000)), '0', '"')`
    database.exec(`update posts set content = ${long} where id > (select max(id) from posts) - ${longPosts}`)
    database.close()
    const served = new Map<string, number>()
    const server = await BenchServer.start(
      [join(import.meta.dirname, '..', '..', 'bin', 'duet.mjs'), 'serve'],
      { PORT: '0', DATABASE_URL: `sqlite:${path}`, RATE_LIMIT_MAX: '0', DEMO_DATA: 'false', THREADS: String(threads) },
      text => {
        // Each connection stays with its thread, so the first answer tells it.
        for (const [, thread, id = ''] of text.matchAll(/"thread":(\d+),"requestId":"(reader-\d+|expensive)/g)) {
          served.set(id, Number(thread))
        }
      },
    )
    return new IsolationServer(server, served)
  }

  private constructor(server: BenchServer, threads: Map<string, number>) {
    this.#server = server
    this.#threads = threads
    this.port = server.port
  }

  threadOf(requestId: string | undefined): number | undefined {
    return this.#threads.get(requestId ?? '')
  }

  /** Sends requests one after the other, from another process: work of this one would be measured as waiting. */
  async drive(workload: Workload, seconds: number) {
    const { answers, seconds: took } = await drive(this.port, workload, 1, seconds)
    await delay(200) // the log is written a moment later
    return { perSecond: answers / took, thread: this.threadOf('expensive') }
  }

  /** How many milliseconds each serving thread has waited for a core. */
  waits(): ReadonlyMap<number, number> {
    const all = new Map<number, number>()
    const tasks = `${this.#server.pid}/task`
    for (const task of readdirSync(`/proc/${tasks}`)) {
      const [, thread] = /^serving (\d+)/.exec(readFileSync(`/proc/${tasks}/${task}/comm`, 'utf8')) ?? []
      if (thread !== undefined) all.set(Number(thread), waitOf(`${tasks}/${task}`))
    }
    return all
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]()
  }
}

/** How many milliseconds a thread has waited for a core. For a process it is its first thread. */
function waitOf(task: string): number {
  const [, nanoseconds] = readFileSync(`/proc/${task}/schedstat`, 'utf8').split(' ')
  return Number(nanoseconds) / 1e6
}

let lastReader = 0

/** One connection, which stays with its thread. */
class Reader implements Disposable {
  /** The id of its first request. The others have none, so that the log is quick to search. */
  readonly firstId = `reader-${++lastReader}`
  readonly #socket: Socket
  #received = Buffer.alloc(0)
  #headers: Readonly<Record<string, string>> = { 'X-Request-Id': this.firstId }
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

  async read(): Promise<void> {
    const answered = new Promise<void>(resolve => {
      this.#resolve = resolve
    })
    this.#socket.write(textOf({ name: 'a read', line: () => 'GET /users/1', headers: () => this.#headers }, ''))
    this.#headers = {}
    await answered
  }

  /** Sends reads at a moderate pace, not all readers at once, and returns how long each took. */
  async measure(ms: number): Promise<number[]> {
    const times: number[] = []
    for (const end = performance.now() + ms; performance.now() < end; ) {
      await delay(5 + Math.random() * 10)
      const begun = performance.now()
      await this.read()
      times.push(performance.now() - begun)
    }
    return times
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }
}
