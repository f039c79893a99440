import { parentPort, workerData } from 'node:worker_threads'
import { CountTable } from '../../src/limits/count-table.ts'
import { SharedRateLimiter } from '../../src/limits/shared-rate-limiter.ts'
import { SharedTally } from '../../src/limits/shared-tally.ts'

/** A thread that counts as fast as possible. */
export interface HammerData {
  readonly owner: number
  readonly times: number
  readonly windows: SharedArrayBuffer
  readonly counts: SharedArrayBuffer
}

const { owner, times, windows, counts } = workerData as HammerData
const limiter = new SharedRateLimiter(times, 3_600_000, { now: Date.now }, windows, owner)
const tally = new SharedTally('sockets', new CountTable(counts, owner))
let allowed = 0
for (let round = 0; round < times; round++) {
  if (limiter.take('a client').allowed) allowed++
  tally.add(`client ${round % 10}`, 1)
  tally.add(`client ${(round * 7) % 100}`, 1)
  tally.add(`client ${(round * 7) % 100}`, -1)
}
parentPort?.postMessage(allowed)
