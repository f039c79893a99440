import { monitorEventLoopDelay } from 'node:perf_hooks'
import { DatabaseSync } from 'node:sqlite'
import { isMainThread } from 'node:worker_threads'

// Loaded into a server under measurement (`node --import`). It answers a benchmark's questions over the channel between
// the two processes: what only the process itself knows exactly.

export interface Question {
  readonly id: number
  /** Collects garbage first, where `--expose-gc` allows it. */
  readonly gc: boolean
}

export interface Reading {
  readonly id: number
  /** Milliseconds of CPU since the start: of all threads, and of the one that serves. */
  readonly cpu: number
  readonly mainCpu: number
  /** The longest that the event loop was late since the reading before, in milliseconds. */
  readonly stall: number
  readonly memory: NodeJS.MemoryUsage
}

if (isMainThread && process.send !== undefined) answerQuestions()
if (process.env.BENCH_CACHE_KB !== undefined) limitPageCache(Number(process.env.BENCH_CACHE_KB))

function answerQuestions(): void {
  const delays = monitorEventLoopDelay({ resolution: 1 })
  delays.enable()
  process.on('message', ({ id, gc }: Question) => {
    const stall = delays.max / 1e6
    if (gc) globalThis.gc?.()
    const whole = process.cpuUsage()
    const main = process.threadCpuUsage()
    const reading: Reading = {
      id,
      cpu: (whole.user + whole.system) / 1000,
      mainCpu: (main.user + main.system) / 1000,
      stall,
      memory: process.memoryUsage(),
    }
    process.send?.(reading)
    // What the answer itself took does not belong to the next reading.
    setImmediate(() => delays.reset())
  })
}

/** Opens every SQLite file with a page cache of another size than the service asks for. */
function limitPageCache(kilobytes: number): void {
  const { exec } = DatabaseSync.prototype
  DatabaseSync.prototype.exec = function (sql) {
    return exec.call(this, sql.replace(/cache_size = -\d+/, `cache_size = -${kilobytes}`))
  }
}
