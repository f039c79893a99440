import { parentPort, workerData } from 'node:worker_threads'
import { MemoryLimits } from '../../src/limits/memory-limits.ts'

// A thread that counts as fast as possible.
const { times, memory } = workerData
const limiter = new MemoryLimits({ now: Date.now }, memory).limiter('x', times, 3_600_000)
let allowed = 0
for (let round = 0; round < times; round++) if (limiter.take('a client').allowed) allowed++
parentPort?.postMessage(allowed)
