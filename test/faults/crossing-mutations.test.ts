import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { postgres, type TestDatabase } from '../support/engines.ts'
import { onlyInFull } from '../support/form.ts'
import { read } from '../support/graphql.ts'
import { createMember } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'
import { assertSound, History, summarise, type Verdict } from './history.ts'
import { Instance } from './instance.ts'
import { judgeOn } from './judgement.ts'
import { attempt, runWorkers } from './payers.ts'

const crossing = 64
const payers = 8

describe('64 mutations at once that name two posts in opposite orders, on PostgreSQL', { skip: postgres.skip }, () => {
  it('all succeed, and concurrent payments keep their speed', { skip: onlyInFull }, async t => {
    await using field = await Field.start()
    const { a, b } = field.shared
    // Each payer pays every 80 ms, or later if it still waits for an answer.
    const pace = (each: number) => field.paymentsPerSecond(each, 80)
    const cross: Pairs = worker => (worker % 2 === 0 ? [a, b] : [b, a])
    const [alone, beside]: [number[], number[]] = [[], []]
    await pace(50) // warm-up
    for (let round = 0; round < 5; round++) {
      alone.push(await pace(50))
      beside.push(await field.whileLiking(cross, () => pace(50)))
    }
    const share = median(beside) / median(alone)
    t.diagnostic(
      `${field.liked} mutations, the slowest took ${Math.round(field.slowest)} ms; payments per second: ${Math.round(median(alone))} alone, ` +
        `${Math.round(median(beside))} beside them (${Math.round(share * 100)} %)`,
    )
    t.diagnostic(summarise(await field.assertSound()))
    assert.ok(share >= 0.8, `${share}`) // only on an idle machine
  })

  it('leave as much to payers without a pause as mutations that do not cross', { skip: onlyInFull }, async t => {
    await using field = await Field.start()
    const { a, b } = field.shared
    const own = await field.createPosts(2 * crossing)
    const cross: Pairs = worker => (worker % 2 === 0 ? [a, b] : [b, a])
    const apart: Pairs = worker => [own[2 * worker] as string, own[2 * worker + 1] as string]
    const [alone, crossed, parted]: [number[], number[], number[]] = [[], [], []]
    const pay = () => field.paymentsPerSecond(100, 0)
    await field.whileLiking(apart, pay) // warm-up
    for (let round = 0; round < 5; round++) {
      alone.push(await pay())
      crossed.push(await field.whileLiking(cross, pay))
      parted.push(await field.whileLiking(apart, pay))
    }
    const share = median(crossed) / median(parted)
    t.diagnostic(
      `payments per second: ${Math.round(median(alone))} alone, ${Math.round(median(crossed))} beside mutations that cross, ` +
        `${Math.round(median(parted))} beside mutations that do not`,
    )
    t.diagnostic(summarise(await field.assertSound()))
    assert.ok(share >= 0.8, `${share}`) // only on an idle machine
  })
})

/** The two posts that the mutation of a worker names. */
type Pairs = (worker: number) => readonly [string, string]

/** A running instance, a member with two posts, and what was paid. */
class Field implements AsyncDisposable {
  readonly shared: { readonly a: string; readonly b: string }
  slowest = 0
  readonly #outcomes = new Map<string, number>()
  readonly #history = new History()
  readonly #parts: AsyncDisposableStack
  readonly #database: TestDatabase
  readonly #instance: Instance
  readonly #token: string
  readonly #socket: SocketClient

  static async start(): Promise<Field> {
    await using parts = new AsyncDisposableStack()
    const database = parts.use(await postgres.create())
    const instance = parts.use(await Instance.start(database))
    const { token } = await createMember(instance)
    const [a = '', b = ''] = await createPosts(instance, token, 2)
    const socket = parts.use(await SocketClient.connect(instance, { token }))
    return new Field(parts.move(), database, instance, token, socket, { a, b })
  }

  private constructor(
    parts: AsyncDisposableStack,
    database: TestDatabase,
    instance: Instance,
    token: string,
    socket: SocketClient,
    shared: Field['shared'],
  ) {
    this.#parts = parts
    this.#database = database
    this.#instance = instance
    this.#token = token
    this.#socket = socket
    this.shared = shared
  }

  get liked(): number {
    return this.#outcomes.get('done') ?? 0
  }

  createPosts(count: number): Promise<readonly string[]> {
    return createPosts(this.#instance, this.#token, count)
  }

  /** Runs the work while 64 workers like pairs of posts. */
  async whileLiking<Result>(pairs: Pairs, work: () => Promise<Result>): Promise<Result> {
    let going = true
    const liking = runWorkers(crossing, async worker => {
      while (going) {
        const begun = performance.now()
        const outcome = await this.#like(pairs(worker))
        this.slowest = Math.max(this.slowest, performance.now() - begun)
        this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1)
      }
    })
    try {
      return await work()
    } finally {
      going = false
      await liking
    }
  }

  async #like([first, second]: readonly [string, string]): Promise<string> {
    const { errors } = await this.#socket.ask(
      `mutation { a: likePost(id: ${first}) { id } b: likePost(id: ${second}) { id } }`,
    )
    return errors === undefined ? 'done' : JSON.stringify(errors)
  }

  /** Each of the payers pays so many times, with so many milliseconds from one payment to the next, or more. */
  async paymentsPerSecond(each: number, everyMs: number): Promise<number> {
    const begun = performance.now()
    await runWorkers(payers, async () => {
      for (let paid = 0; paid < each; paid++) {
        const pause = begun + paid * everyMs - performance.now()
        if (pause > 0) await delay(pause)
        await attempt(this.#history, this.#instance.url, this.#history.intend())
      }
    })
    return (payers * each * 1000) / (performance.now() - begun)
  }

  /** Fails unless every mutation succeeded and every payment was answered and is in the ledger once. */
  async assertSound(): Promise<Verdict> {
    assert.deepEqual([...this.#outcomes.keys()], ['done'])
    const verdict = await judgeOn(this.#database, this.#history)
    assert.equal(verdict.unavailable, 0)
    assertSound(verdict)
    assert.deepEqual(this.#instance.faults, [])
    return verdict
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#parts.disposeAsync()
  }
}

async function createPosts(instance: Instance, token: string, count: number): Promise<readonly string[]> {
  const ids: string[] = []
  for (let at = 0; at < count; at++) {
    const { createPost } = await read<{ createPost: { id: string } }>(instance, create, { token })
    ids.push(createPost.id)
  }
  return ids
}

const create = 'mutation { createPost(title: "a", content: "a") { id } }'

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1] ?? Number.NaN
}
