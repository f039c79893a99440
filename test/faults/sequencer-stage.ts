import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { connect, live } from '../../client/src/index.ts'
import { connectTo } from '../storage/transaction.ts'
import { askByFetch } from '../support/http.ts'
import { freePort } from '../support/ports.ts'
import type { PostgresServer } from '../support/postgres.ts'
import { createMember } from '../support/rest.ts'
import { executeOn } from '../support/templates.ts'
import { testTimeoutMs, waitUntil, within } from '../support/wait.ts'
import { Instance } from './instance.ts'
import { runWorkers } from './payers.ts'
import { startPgBouncer } from './proxies.ts'
import { type Ends, Wire } from './wire.ts'

/** One of the instances, behind its own wire, with a subscriber that reconnects and resumes. */
interface Side {
  readonly sequencer: SequencerWire
  /** Starts its instance, again if it was killed. */
  start(): Promise<Instance>
  instance: Instance
  /** The ids of the posts that the subscriber was told, and `gap` where it was told that events may be missing. */
  readonly told: string[]
  retryNow(): void
}

/** Two instances on a new database. The first one may connect through PgBouncer. */
export async function startStage(server: PostgresServer, isFirstPooled: boolean, env = {}) {
  const parts = new AsyncDisposableStack()
  const name = `sequencer_${++databases}`
  await executeOn(server.url, `create database ${name}`)
  const database = server.url.replace(/\w+$/, name)
  const startSide = async (isPooled = false): Promise<Side> => {
    const entrance = new URL(database)
    if (isPooled) entrance.port = String(parts.use(await startPgBouncer(new URL(server.url))).port)
    const settings = { ...env, ...(isPooled && { DATABASE_POOLER: 'transaction' }), PORT: String(await freePort()) }
    const wire = parts.use(await Wire.to(entrance))
    const sequencer = new SequencerWire(wire)
    const start = () => Instance.start({ url: wire.through(entrance.href) }, settings)
    const instance = await start()
    return { sequencer, start, instance, ...subscribe(instance.url, parts) }
  }
  const sides = [await startSide(isFirstPooled), await startSide()] as const
  const { token } = await createMember(sides[0].instance)
  for (const { told } of sides) await waitUntil(() => told.shift() === 'start')

  /** The ids of the posts whose writing was answered. */
  const answered: string[] = []
  const fields = Array.from({ length: 5 }, (_, n) => `p${n}: createPost(title: "T", content: "C") { id }`)
  const request = {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query: `mutation { ${fields} }` }),
  }
  /** Writes this many posts. Several writers repeat what is not answered with success. */
  const write = async (count: number, to = sides[0]) => {
    const enough = answered.length + count
    await runWorkers(8, async () => {
      while (answered.length < enough) {
        const answer = await askByFetch(`${to.instance.url}/graphql`, request).catch(() => undefined)
        if (answer?.status !== 200) await delay(10)
        else answered.push(...Object.values<{ id: string }>(JSON.parse(answer.body).data).map(({ id }) => id))
      }
    })
  }

  /** Transactions of other programs that have written something, in this database and in another one. */
  const openTransactions = async () => {
    for (const location of [database, server.url]) {
      const client = parts.use(await connectTo(location))
      client.on('error', () => {}) // PostgreSQL is restarted
      await client.query('begin; create table report (line text)')
    }
  }

  const rowsOf = async (text: string): Promise<readonly (readonly unknown[])[]> => {
    await using client = await connectTo(database)
    return (await client.query({ text, rowMode: 'array' })).rows
  }
  const isLocked = async () => {
    return (await rowsOf('select position from event_head for update nowait').catch(({ code }) => code)) === '55P03'
  }

  /** Kills an instance between the statements of its sequencer and their COMMIT, and starts it again. */
  const killSequencer = async (side: Side) => {
    await side.sequencer.holdNext()
    assert.ok(await isLocked())
    side.instance.signal('SIGKILL')
    await side.instance[Symbol.asyncDispose]()
    side.instance = await side.start()
    side.retryNow()
  }

  /** Compares what the subscribers were told with the log, when they were told its end or the time is over. */
  const judge = async () => {
    const deadline = performance.now() + testTimeoutMs / 2
    const settle = async (isSettled: () => boolean | Promise<boolean>) =>
      waitUntil(async () => performance.now() > deadline || (await isSettled()))
    const isPlaced = async () => (await rowsOf('select id from outbox where position is null')).length === 0
    await settle(isPlaced)
    await write(1, sides[1])
    await settle(isPlaced) // before that, the order of the last events is not known
    const log = await rowsOf("select post_id from outbox where kind = 'post-added' order by position, id")
    const posts = log.map(([id]) => String(id))
    await settle(() => sides.every(({ told }) => told.includes(posts.at(-1) ?? '')))
    const positions = await rowsOf('select position from outbox order by position')
    /** Where one list differs from the other first, and what it has there. */
    const differs = (one: readonly unknown[], other: readonly unknown[]) => {
      const at = one.findIndex((value, at) => value !== other[at])
      return [at, ...one.slice(at, at + 3)]
    }
    const offences = [
      ['gaps between positions', positions.findIndex(([position], at) => Number(position) !== at + 1)],
      ['missing in the log', answered.findIndex(id => !posts.includes(id))],
      ...sides.flatMap(({ told }, side) => [
        [`not told to ${side}`, ...differs(posts, told)],
        [`told to ${side} beyond the log`, ...differs(told, posts)],
      ]),
    ].filter(([, at]) => at !== -1)
    return { offences, told: posts.length }
  }

  const end = async () => {
    for (const { instance } of sides) await instance[Symbol.asyncDispose]()
    await parts.disposeAsync()
  }
  return { sides, answered, write, openTransactions, isLocked, killSequencer, judge, [Symbol.asyncDispose]: end }
}

function subscribe(url: string, parts: AsyncDisposableStack): Pick<Side, 'told' | 'retryNow'> {
  const duet = connect({ url })
  parts.defer(() => duet.close())
  const told: string[] = []
  live(duet).subscribe<{ postAdded: { id: string } }>(
    'subscription { postAdded { id } }',
    {},
    {
      onData: ({ postAdded }) => told.push(postAdded.id),
      onReadAnew: why => told.push(why),
      onError: ({ message }) => told.push(message),
    },
  )
  return { told, retryNow: () => live(duet).retryNow() }
}

let databases = 0

/**
 * A proxy between an instance and PostgreSQL that recognises the sequencer of events. Between its statements and its
 * COMMIT it holds the row lock of `event_head`, and there the proxy can stop it.
 */
class SequencerWire {
  /** The name under which a connection has prepared the statement that locks the row. */
  readonly #names = new WeakMap<Ends, string>()
  readonly #sequencing = new WeakSet<Ends>()
  #hold: (() => void) | undefined
  /** How many transactions of the sequencer have sent their COMMIT. */
  sequenced = 0

  constructor(wire: Wire) {
    wire.fromClient = (data, ends) => this.#decide(data, ends)
  }

  /** Keeps the next COMMIT of the sequencer back, for ever. Settles when PostgreSQL waits for it. */
  holdNext(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#hold = resolve
    return within(promise, 'a COMMIT of the sequencer')
  }

  #decide(data: Buffer, ends: Ends): 'pass' | 'keep' {
    const text = data.toString('latin1')
    if (this.#sequencing.delete(ends) && text.includes('commit\0')) {
      this.sequenced++
      if (this.#hold === undefined) return 'pass'
      this.#hold()
      this.#hold = undefined
      return 'keep'
    }
    const parsed = lockingStatement.exec(text)
    const name = parsed?.[1] || this.#names.get(ends)
    if (name !== undefined) this.#names.set(ends, name)
    if (parsed !== null || (name !== undefined && text.includes(`\0${name}\0`))) this.#sequencing.add(ends)
    return 'pass'
  }
}

const lockingStatement = /(\w*)\0select position from event_head for update/
