import { unavailable } from './errors.ts'

export interface FairQueueBounds {
  readonly atOnce: number
  /** How many tasks of one client may run at the same time. */
  readonly perClient?: number
  readonly mayWait?: number
}

/** Runs tasks when it is their turn. */
export interface Turns {
  /** `waitMs`: how long the task may wait for its turn. Then it is rejected with `unavailable`. */
  run<Outcome>(client: string, work: () => Promise<Outcome>, waitMs?: number): Promise<Outcome>
}

/**
 * Runs tasks for many clients, with a limit on running tasks and a limit on waiting tasks. Clients take turns. When too
 * many tasks wait, the queue rejects one with `unavailable`: the newest task of the client with the most waiting tasks.
 * So a client that sends a lot neither causes rejections of other clients nor delays them for long.
 */
export class FairQueue implements Turns {
  readonly #atOnce: number
  readonly #perClient: number
  readonly #mayWait: number
  /** Sorted by turn: the first client is served next. */
  readonly #lanes = new Map<string, Lane>()
  #running = 0
  #waiting = 0

  constructor({ atOnce, perClient = atOnce, mayWait = Number.POSITIVE_INFINITY }: FairQueueBounds) {
    this.#atOnce = atOnce
    this.#perClient = perClient
    this.#mayWait = mayWait
  }

  run<Outcome>(client: string, work: () => Promise<Outcome>, waitMs?: number): Promise<Outcome> {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
    const lane = this.#lanes.get(client) ?? { waiting: [], running: 0 }
    if (lane.waiting.length === 0) this.#putLast(client, lane)
    const start = () => Promise.try(work).then(resolve, reject)
    const task: Task = { start, reject, waits: true, timer: undefined }
    lane.waiting.push(task)
    this.#waiting++
    this.#startAll()
    if (this.#waiting > this.#mayWait) this.#rejectOne(client, lane)
    if (waitMs !== undefined && task.waits) {
      task.timer = setTimeout(() => this.#giveUp(client, lane, task), waitMs)
    }
    return promise
  }

  /** The number of clients with waiting or running tasks. */
  get clients(): number {
    return this.#lanes.size
  }

  #startAll(): void {
    while (this.#running < this.#atOnce) {
      const turn = this.#next()
      if (turn === undefined) return
      this.#start(...turn)
    }
  }

  #next(): [client: string, lane: Lane, task: Task] | undefined {
    for (const [client, lane] of this.#lanes) {
      const [task] = lane.waiting
      if (task !== undefined && lane.running < this.#perClient) return [client, lane, task]
    }
    return undefined
  }

  #start(client: string, lane: Lane, task: Task): void {
    settle(task)
    lane.waiting.shift()
    this.#waiting--
    this.#putLast(client, lane)
    lane.running++
    this.#running++
    task.start().finally(() => {
      lane.running--
      this.#running--
      this.#forgetIdle(client, lane)
      this.#startAll()
    })
  }

  #putLast(client: string, lane: Lane): void {
    this.#lanes.delete(client)
    this.#lanes.set(client, lane)
  }

  // The newest task has waited for the shortest time. If several lanes are equally long, the newcomer's task is rejected.
  #rejectOne(client: string, newcomer: Lane): void {
    const longer = (one: Lane, other: Lane) => (other.waiting.length > one.waiting.length ? other : one)
    const longest = [...this.#lanes.values()].reduce(longer, newcomer)
    const rejected = longest.waiting.pop()
    this.#waiting--
    if (rejected !== undefined) settle(rejected).reject(unavailable(new Error('Too many tasks are waiting')))
    this.#forgetIdle(client, newcomer)
  }

  #giveUp(client: string, lane: Lane, task: Task): void {
    lane.waiting.splice(lane.waiting.indexOf(task), 1)
    this.#waiting--
    this.#forgetIdle(client, lane)
    task.reject(unavailable(new Error('The task waited too long')))
  }

  #forgetIdle(client: string, { running, waiting }: Lane): void {
    if (running === 0 && waiting.length === 0) this.#lanes.delete(client)
  }
}

interface Lane {
  readonly waiting: Task[]
  running: number
}

interface Task {
  start(): Promise<void>
  reject(reason: Error): void
  waits: boolean
  timer: NodeJS.Timeout | undefined
}

function settle(task: Task): Task {
  task.waits = false
  clearTimeout(task.timer)
  return task
}
