import { readdirSync, readFileSync } from 'node:fs'

/** Microseconds of CPU that a process has used, all threads together, to the nanosecond that the kernel counts. */
export function cpuOf(pid: number): number {
  try {
    const threads = readdirSync(`/proc/${pid}/task`)
    return threads.reduce((sum, thread) => sum + onCpu(`/proc/${pid}/task/${thread}/schedstat`), 0)
  } catch {
    return 0 // it has ended meanwhile
  }
}

/** Microseconds of CPU that this process and its ended children have used, in steps of ten milliseconds. */
export function ownCpu(): number {
  return timesOf('self').reduce((sum, each) => sum + each, 0)
}

/** Microseconds of CPU that a process has used in the kernel, in steps of ten milliseconds. */
export function kernelCpuOf(pid: number): number {
  return timesOf(pid)[1] ?? 0
}

/** Microseconds in user mode and in the kernel, then those of ended children. */
function timesOf(process: number | 'self'): readonly number[] {
  // The name of the program, in brackets, may contain spaces.
  const [, afterName = ''] = readFileSync(`/proc/${process}/stat`, 'utf8').split(') ')
  return afterName
    .split(' ')
    .slice(11, 15)
    .map(hundredths => Number(hundredths) * 10_000)
}

/** Bytes of memory that a process holds. */
export function memoryOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024
}

export function parentOf(pid: number): number | undefined {
  try {
    return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  } catch {
    return undefined // it has ended meanwhile
  }
}

export function childrenOf(parent: number): readonly number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter(pid => pid > 0 && parentOf(pid) === parent)
}

function onCpu(path: string): number {
  try {
    return Number(readFileSync(path, 'utf8').split(' ')[0]) / 1000
  } catch {
    return 0 // the thread has ended meanwhile
  }
}
