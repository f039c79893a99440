import { monitorEventLoopDelay } from 'node:perf_hooks'
import { DatabaseSync } from 'node:sqlite'
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8'
import { BroadcastChannel, isMainThread, threadId } from 'node:worker_threads'

// Loaded into a server under measurement (`node --import`). It answers a benchmark's questions over the channel between
// the two processes: what only the process itself knows exactly.

export interface Question {
  readonly id: number
  /** Collects garbage first, where `--expose-gc` allows it. */
  readonly gc: boolean
}

export interface Reading {
  readonly id: number
  /** Milliseconds of CPU since the start, of all threads. */
  readonly cpu: number
  /** The longest that the event loop was late since the reading before, in milliseconds. */
  readonly stall: number
  /** The most CPU that its thread used in one turn of it, in milliseconds: the stall of a machine without other work. */
  readonly turn: number
  readonly memory: NodeJS.MemoryUsage
  /** Bytes that the heap has taken from the system, used or not: for new objects, and for all others. */
  readonly heap: { readonly young: number; readonly old: number }
  /** Bytes of the heaps of other threads, as they told lately. */
  readonly threadHeaps: { readonly used: number; readonly total: number }
}

interface ThreadHeap {
  readonly thread: number
  readonly used: number
  readonly total: number
}

/** Looks once a turn of the event loop, but no more than once a millisecond, how much CPU its thread has used. */
class Turns {
  #last = threadCpu()
  #most = 0

  constructor() {
    setInterval(() => this.#look(), 1).unref()
  }

  /** The most that one took since this was asked before. */
  take(): number {
    this.#look()
    const most = this.#most
    this.#most = 0
    return most
  }

  #look(): void {
    const now = threadCpu()
    this.#most = Math.max(this.#most, now - this.#last)
    this.#last = now
  }
}

const heaps = new BroadcastChannel('heaps of threads')
heaps.unref()
if (!isMainThread) tellHeap()
else if (process.send !== undefined) answerQuestions()
if (process.env.BENCH_CACHE_KB !== undefined) limitPageCache(Number(process.env.BENCH_CACHE_KB))

function answerQuestions(): void {
  const delays = monitorEventLoopDelay({ resolution: 1 })
  delays.enable()
  const turns = new Turns()
  const threads = new Map<number, ThreadHeap>()
  heaps.onmessage = event => {
    const heap = event.data as ThreadHeap
    threads.set(heap.thread, heap)
  }
  process.on('message', ({ id, gc }: Question) => {
    const stall = delays.max / 1e6
    const turn = turns.take()
    if (gc) globalThis.gc?.()
    const whole = process.cpuUsage()
    const reading: Reading = {
      id,
      cpu: (whole.user + whole.system) / 1000,
      stall,
      turn,
      memory: process.memoryUsage(),
      heap: { young: taken(name => name.startsWith('new_')), old: taken(name => !name.startsWith('new_')) },
      threadHeaps: {
        used: threads.values().reduce((sum, { used }) => sum + used, 0),
        total: threads.values().reduce((sum, { total }) => sum + total, 0),
      },
    }
    process.send?.(reading)
    // What the answer itself took does not belong to the next reading.
    setImmediate(() => {
      delays.reset()
      turns.take()
    })
  })
}

function threadCpu(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

function taken(isWanted: (space: string) => boolean): number {
  return getHeapSpaceStatistics().reduce(
    (sum, { space_name, space_size }) => sum + (isWanted(space_name) ? space_size : 0),
    0,
  )
}

function tellHeap(): void {
  const tell = () => {
    const { used_heap_size: used, total_heap_size: total } = getHeapStatistics()
    heaps.postMessage({ thread: threadId, used, total } satisfies ThreadHeap)
  }
  setInterval(tell, 2000).unref()
}

/** Opens every SQLite file with a page cache of another size than the service asks for. */
function limitPageCache(kilobytes: number): void {
  const { exec } = DatabaseSync.prototype
  DatabaseSync.prototype.exec = function (sql) {
    return exec.call(this, sql.replace(/cache_size = -\d+/, `cache_size = -${kilobytes}`))
  }
}
