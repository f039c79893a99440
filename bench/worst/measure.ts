import type { Answer, Client } from '../client.ts'
import type { BenchServer } from '../core/server.ts'
import type { Database } from '../databases.ts'
import { type Candidate, sent } from './candidates.ts'
import { between, forgetPeak, peakOf, threadsOf, timesOf } from './processes.ts'

/** What something took: milliseconds, and bytes. */
export interface Measured {
  readonly name: string
  readonly text: string
  readonly cost: number | undefined
  readonly status: string
  /** Of all threads of the server. */
  readonly cpu: number
  /** CPU of the database's own processes, where it has some. */
  readonly databaseCpu: number
  /** Of the thread that serves alone. */
  readonly thread: number
  /** The longest that the event loop was held up, less what its thread waited for a processor, if that is known. */
  readonly stall: number
  /** The most that the process had more than before. */
  readonly memory: number
  /**
   * From asking the store until it answered, reads and writes together, less what threads waited for a processor. Of a
   * removal in steps, the mean of a step: others are served in between.
   */
  readonly database: number
}

export type Costs = Pick<Measured, 'cpu' | 'databaseCpu' | 'thread' | 'stall' | 'memory' | 'database'>

/** Measures what one thing costs a server that does nothing else. */
export class Meter {
  readonly #server: BenchServer
  readonly #database: Database
  readonly client: Client
  #tags = 0

  constructor(server: BenchServer, client: Client, database: Database) {
    this.#server = server
    this.#database = database
    this.client = client
  }

  /** Sends it so many times. The least counts of each: what else goes on in the machine can only add to it. */
  async measure(candidate: Candidate, times: number): Promise<Costs & Pick<Measured, 'status'>> {
    let least: Costs | undefined
    let status = ''
    for (let time = 0; time < (candidate.once ? 1 : times); time++) {
      const tag = this.tag()
      const costs = await this.costsOf(async () => {
        status = statusOf(await this.client.send(candidate.path, sent(candidate, tag)))
      })
      least = least === undefined ? costs : leastOf(least, costs)
    }
    return { ...(least ?? nothing), status }
  }

  /** A name that was not used before. */
  tag(): string {
    return `t${++this.#tags}`
  }

  async costsOf(work: () => Promise<void>): Promise<Costs> {
    const storeBefore = await this.#storeMs()
    const before = await this.#server.read()
    const times = this.#times()
    forgetPeak(this.#server.pid)
    const memory = this.#server.memory()
    await work()
    const after = await this.#server.read()
    const peak = peakOf(this.#server.pid)
    const later = this.#times()
    const serving = between(times.serving, later.serving)
    const others = between(times.others, later.others)
    const store = await this.#storeMs()
    const waiting = serving.waited + others.busiest.waited
    // What its own threads ran is the least that a write took; reads may have been done by the one that serves.
    const least = times.isApart || store.writes > storeBefore.writes ? others.busiest.ran : 0
    return {
      cpu: after.cpu - before.cpu,
      databaseCpu: times.isApart ? others.ran : 0,
      thread: serving.ran,
      stall: Math.max(after.turn, after.stall - serving.waited),
      memory: Math.max(0, peak - memory),
      database: Math.max(least, store.all - storeBefore.all - waiting) / Math.max(1, store.steps - storeBefore.steps),
    }
  }

  /** Of the thread that serves, and of those that work for it: the database's processes, or the threads of this one. */
  #times() {
    const { pid } = this.#server
    const processes = this.#database.processes()
    const isApart = processes.length > 0
    const others = isApart
      ? processes.map(each => [each, timesOf(each, each)] as const)
      : threadsOf(pid).flatMap(thread => (thread === pid ? [] : [[thread, timesOf(pid, thread)] as const]))
    return { isApart, serving: new Map([[pid, timesOf(pid, pid)]]), others: new Map(others) }
  }

  async #storeMs(): Promise<{ readonly writes: number; readonly all: number; readonly steps: number }> {
    const { body } = await this.client.send('/metrics')
    const value = (name: string) => Number(new RegExp(`^duet_store_${name} (\\S+)`, 'm').exec(body)?.[1])
    const writes = 1000 * value('write_seconds_sum')
    return { writes, all: 1000 * value('read_seconds_sum') + writes, steps: value('write_seconds_count') }
  }
}

export const nothing: Costs = { cpu: 0, databaseCpu: 0, thread: 0, stall: 0, memory: 0, database: 0 }

export function leastOf(one: Costs, other: Costs): Costs {
  return {
    cpu: Math.min(one.cpu, other.cpu),
    databaseCpu: Math.min(one.databaseCpu, other.databaseCpu),
    thread: Math.min(one.thread, other.thread),
    stall: Math.min(one.stall, other.stall),
    memory: Math.min(one.memory, other.memory),
    database: Math.min(one.database, other.database),
  }
}

/** The status, with the code of a refusal. */
function statusOf({ status, body }: Answer): string {
  const code = status < 300 ? undefined : /"code":\s*"(\w+)"/.exec(body.slice(0, 100_000))?.[1]
  return code === undefined ? `${status}` : `${status} ${code}`
}
