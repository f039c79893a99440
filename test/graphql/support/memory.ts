import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
export const collectGarbage: () => void = runInNewContext('gc')

/** The number of bytes that some work keeps in use, after garbage collection. */
export function growthOf(work: () => void): number {
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  work()
  collectGarbage()
  return process.memoryUsage().heapUsed - before
}

export const megabytes = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MiB`
