import { readFileSync } from 'node:fs'
import type { BenchServer } from '../core/server.ts'

interface Sample {
  readonly seconds: number
  /** In KB. */
  readonly sizes: Readonly<Record<string, number>>
}

/** The memory of a server as time goes by. */
export class MemoryRecord {
  readonly #server: BenchServer
  readonly #samples: Sample[] = []

  constructor(server: BenchServer) {
    this.#server = server
  }

  /** After garbage collection, so that only memory in use is counted. */
  async sample(seconds: number): Promise<void> {
    const { memory, heap, threadHeaps, cpu } = await this.#server.read({ gc: true })
    const sizes = {
      rss: memory.rss / 1024,
      'heap used': memory.heapUsed / 1024,
      'young heap': heap.young / 1024,
      'old heap': heap.old / 1024,
      'heaps of threads': threadHeaps.total / 1024,
      external: memory.external / 1024,
      'array buffers': memory.arrayBuffers / 1024,
      // Memory that is not mapped from files: V8's heaps, SQLite's pages, and free memory of the allocator.
      anonymous: anonymous(this.#server.pid),
    }
    this.#samples.push({ seconds, sizes })
    const told = Object.entries(sizes).map(([name, size]) => `${name} ${(size / 1024).toFixed(1)}`)
    console.log(`${seconds.toFixed(0).padStart(5)} s  MB: ${told.join(', ')}; CPU ${(cpu / 1000).toFixed(1)} s`)
  }

  /** How fast it grew once a part of the time was over, by least squares. */
  conclude(warmUp: number): void {
    const end = this.#samples.at(-1)?.seconds ?? 0
    const counted = this.#samples.filter(({ seconds }) => seconds >= end * warmUp)
    console.log(`Growth from ${(end * warmUp).toFixed(0)} s on:`)
    for (const name of Object.keys(counted[0]?.sizes ?? {})) {
      const slope = slopeOf(counted.map(({ seconds, sizes }) => [seconds, sizes[name] ?? 0]))
      console.log(`  ${name.padEnd(16)} ${slope.toFixed(2).padStart(8)} KB/s`)
    }
  }
}

function anonymous(pid: number): number {
  return Number(/^Anonymous:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1])
}

function slopeOf(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (of: (point: readonly [number, number]) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length
  const [meanX, meanY] = [mean(([x]) => x), mean(([, y]) => y)]
  return mean(([x, y]) => (x - meanX) * (y - meanY)) / mean(([x]) => (x - meanX) ** 2)
}
