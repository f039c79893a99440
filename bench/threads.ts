import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ownCpu } from './core/processes.ts'
import { BenchServer } from './core/server.ts'
import { fillSqlite } from './plant.ts'
import { drive, hasWrk } from './threads/drive.ts'
import { printIsolation } from './threads/isolation.ts'
import { workloads } from './threads/workloads.ts'

// Duet with 1 to N threads on SQLite: requests per second and CPU per request of four kinds of requests, the time of a
// start and the memory. Then how the slowest percent of reads changes while another client sends the most expensive
// operations it may. The servers take turns in one run. The client uses the same cores, so throughput only grows
// while there are cores left, which the printed use of cores tells: a client that uses a whole one was the limit. CPU per
// request tells what threads cost in any case.

const { values } = parseArgs({
  options: {
    most: { type: 'string', default: String(Math.min(8, availableParallelism())) },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    warm: { type: 'string', default: '3' },
    connections: { type: 'string', default: '64' },
    /** Whether there are so many connections for each thread: then as many requests share a turn and a commit. */
    each: { type: 'boolean', default: false },
    /** Whether only the last part runs. */
    isolation: { type: 'boolean', default: false },
  },
})
const [most = 1, rounds = 1, seconds = 1, connections = 1, warm = 1] = [
  values.most,
  values.rounds,
  values.seconds,
  values.connections,
  values.warm,
].map(Number)

interface Sum {
  answers: number
  seconds: number
  /** Microseconds, of the server and of the client. */
  cpu: number
  client: number
}

interface Measured {
  readonly server: BenchServer
  readonly startMs: number
  readonly idle: number
  readonly sums: Map<string, Sum>
}

if (!values.isolation) await compare()
await printIsolation(Math.max(2, Math.min(4, most)), rounds, seconds)

async function compare(): Promise<void> {
  const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'duet-bench-'))
  try {
    await using running = new AsyncDisposableStack()
    const all = new Map<number, Measured>()
    for (let threads = 1; threads <= most; threads++) {
      const path = join(folder, `${threads}.db`)
      fillSqlite(path, 20_000)
      const begun = performance.now()
      const server = running.use(await start(path, threads))
      const startMs = performance.now() - begun
      all.set(threads, { server, startMs, idle: server.memory(), sums: new Map() })
    }
    if (!hasWrk)
      console.log('wrk is not in PATH: the client is one thread of Node, which may be slower than the server.')
    for (let round = -warm; round < rounds; round++) {
      for (const [threads, { server, sums }] of all) {
        const open = values.each ? connections * threads : connections
        for (const workload of workloads) {
          const [before, clientBefore] = [server.cpu(), ownCpu()]
          const { answers, seconds: took } = await drive(server.port, workload, open, seconds)
          if (round < 0) continue // each thread compiles its code for itself
          const sum = sums.get(workload.name) ?? { answers: 0, seconds: 0, cpu: 0, client: 0 }
          sum.answers += answers
          sum.seconds += took
          sum.cpu += server.cpu() - before
          sum.client += ownCpu() - clientBefore
          sums.set(workload.name, sum)
        }
      }
    }
    print(all)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function start(path: string, threads: number): Promise<BenchServer> {
  return BenchServer.start([join(import.meta.dirname, '..', 'bin', 'duet.mjs'), 'serve'], {
    PORT: '0',
    DATABASE_URL: `sqlite:${path}`,
    RATE_LIMIT_MAX: '0',
    LOG_LEVEL: 'warn',
    DEMO_DATA: 'false',
    THREADS: String(threads),
  })
}

function print(all: ReadonlyMap<number, Measured>): void {
  for (const { name } of workloads) {
    console.log(name)
    const [first] = Array.from(all.values(), ({ sums }) => rates(sums.get(name)))
    for (const [threads, { sums }] of all) {
      const { perSecond, cpu, serverCores, clientCores } = rates(sums.get(name))
      const times = (perSecond / (first?.perSecond ?? 1)).toFixed(2)
      const cost = (cpu / (first?.cpu ?? 1)).toFixed(2)
      console.log(
        `  ${threads} threads  ${Math.round(perSecond).toString().padStart(6)} requests/s  ${times} x  ${cpu.toFixed(0).padStart(4)} µs of CPU each  ${cost} x  cores: server ${serverCores.toFixed(2)}, client ${clientCores.toFixed(2)}`,
      )
    }
  }
  console.log('start, and memory before and after the load')
  for (const [threads, { startMs, idle, server }] of all) {
    const mebibytes = (bytes: number) =>
      `${Math.round(bytes / 2 ** 20)
        .toString()
        .padStart(4)} MiB`
    console.log(`  ${threads} threads  ${Math.round(startMs)} ms  ${mebibytes(idle)}  ${mebibytes(server.memory())}`)
  }
}

function rates({ answers, seconds, cpu, client }: Sum = { answers: 0, seconds: 1, cpu: 0, client: 0 }) {
  const cores = (microseconds: number) => microseconds / 1e6 / seconds
  return { perSecond: answers / seconds, cpu: cpu / answers, serverCores: cores(cpu), clientCores: cores(client) }
}
