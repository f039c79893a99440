import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { Answer, Client } from '../client.ts'
import type { Database } from '../databases.ts'
import type { BenchServer } from '../load.ts'
import { type Candidate, tagged } from './candidates.ts'

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
  /** The longest that the event loop was held up, less what its thread waited for a processor. */
  readonly stall: number
  /** The most that the process had more than before. */
  readonly memory: number
  /** From asking the store until it answered, reads and writes together, less what threads waited for a processor. */
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
  async measure(
    { path, method, text, variables, once }: Candidate,
    times: number,
  ): Promise<Costs & Pick<Measured, 'status'>> {
    let least: Costs | undefined
    let status = ''
    for (let time = 0; time < (once ? 1 : times); time++) {
      const sent = text === undefined ? undefined : tagged(text, this.tag())
      const body = path === '/graphql' && !sent?.startsWith('{"query"') ? { query: sent, variables } : sent
      const costs = await this.costsOf(async () => {
        status = statusOf(await this.client.send(path, { method, ...(body !== undefined && { body }) }))
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
    const timesBefore = this.#times()
    forgetPeak(this.#server.pid)
    const memory = this.#server.memory()
    await work()
    const after = await this.#server.read()
    const peak = peakOf(this.#server.pid)
    const times = this.#times()
    const waited = times.all.waited - timesBefore.all.waited + (times.database.waited - timesBefore.database.waited)
    return {
      cpu: after.cpu - before.cpu,
      databaseCpu: times.database.ran - timesBefore.database.ran,
      thread: times.serving.ran - timesBefore.serving.ran,
      stall: Math.max(0, after.stall - (times.serving.waited - timesBefore.serving.waited)),
      memory: Math.max(0, peak - memory),
      database: Math.max(0, (await this.#storeMs()) - storeBefore - waited),
    }
  }

  #times() {
    const { pid } = this.#server
    return {
      serving: timesOf(pid, pid),
      all: sumOf(readdirSync(`/proc/${pid}/task`).map(thread => timesOf(pid, Number(thread)))),
      database: sumOf(this.#database.processes().map(each => timesOf(each, each))),
    }
  }

  async #storeMs(): Promise<number> {
    const { body } = await this.client.send('/metrics')
    const sums = body.matchAll(/^duet_store_(?:read|write)_seconds_sum (\S+)/gm)
    return 1000 * sums.reduce((sum, [, seconds]) => sum + Number(seconds), 0)
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

interface Times {
  readonly ran: number
  readonly waited: number
}

/** Milliseconds that a thread ran, and that it was ready to run and had no processor. */
function timesOf(pid: number, thread: number): Times {
  try {
    const [ran, waited] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')
    return { ran: Number(ran) / 1e6, waited: Number(waited) / 1e6 }
  } catch {
    return { ran: 0, waited: 0 } // it has ended meanwhile
  }
}

function sumOf(all: readonly Times[]): Times {
  return all.reduce((sum, { ran, waited }) => ({ ran: sum.ran + ran, waited: sum.waited + waited }), {
    ran: 0,
    waited: 0,
  })
}

// Linux counts the peak of a process's memory anew after this.
function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

function peakOf(pid: number): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}
