import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

export interface Times {
  readonly ran: number
  readonly waited: number
}

type Threads = ReadonlyMap<number, Times | undefined>

/** Milliseconds that a thread ran, and that it was ready to run and had no processor. */
export function timesOf(pid: number, thread: number): Times | undefined {
  try {
    const [ran, waited] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')
    return { ran: Number(ran) / 1e6, waited: Number(waited) / 1e6 }
  } catch {
    return undefined // it has ended meanwhile
  }
}

/** What the threads did meanwhile, as far as they are still there, and what the one did that ran most. */
export function between(before: Threads, after: Threads): Times & { readonly busiest: Times } {
  const all = [...after].flatMap(([thread, times]) => {
    const earlier = before.get(thread)
    return times ? { ran: times.ran - (earlier?.ran ?? 0), waited: times.waited - (earlier?.waited ?? 0) } : []
  })
  const busiest = all.toSorted((a, b) => b.ran - a.ran)[0] ?? { ran: 0, waited: 0 }
  return {
    ran: all.reduce((sum, { ran }) => sum + ran, 0),
    waited: all.reduce((sum, { waited }) => sum + waited, 0),
    busiest,
  }
}

export function threadsOf(pid: number): readonly number[] {
  return readdirSync(`/proc/${pid}/task`).map(Number)
}

/** Linux counts the peak of a process's memory anew after this. */
export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

export function peakOf(pid: number): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}
