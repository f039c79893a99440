import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from '../client.ts'
import { peer, peerSettings } from '../core/contenders.ts'
import type { Contender, Result, Sample } from '../core/model.ts'
import { apollo, bareLoop, duet, mercurius, yoga } from '../core/names.ts'
import { BenchServer } from '../core/server.ts'
import type { Received, SubscriberOrder } from '../core/subscriber-process.ts'
import type { Tokens } from '../core/tokens.ts'
import { Worker } from '../core/worker.ts'
import { fillSqlite } from '../plant.ts'
import type { Part } from './context.ts'

const kinds = [
  {
    name: 'small',
    title: 'an event with two fields',
    query: 'subscription { postAdded { id title } }',
    mutation: 'mutation { createPost(title: "A title of a post", content: "Some content") { id } }',
  },
  {
    name: 'nested',
    title: 'an event with its post, ten comments and their authors',
    query: `subscription { commentAdded(postId: 1) {
      id text author { name } post { title author { name } comments { text author { name } } } } }`,
    mutation: 'mutation { addComment(postId: 1, text: "A remark") { id } }',
  },
] as const
type Kind = (typeof kinds)[number]

/** Deliveries that are measured in one slice. */
const deliveries = { quick: 3_000, full: 10_000 } as const

/** Events to many sockets, each of which has ids of its own for its two subscriptions. */
export const subscriptions: Part = {
  name: 'subscriptions',
  async run({ folder, tokens, pace, isQuick, wants, starter }) {
    const counts = [1000, ...(isQuick ? [] : [10_000])].filter(count => wants(`subscriptions-${count}`))
    if (counts.length === 0) return []
    await using stack = new AsyncDisposableStack()
    const template = join(folder, 'subscriptions.db')
    fillSqlite(template, 40, 10)
    const started = await starter(stack).start([duet, yoga, apollo, mercurius], template)
    const server = stack.use(await BenchServer.start([peer('bare-sockets.mjs')], peerSettings))
    const audiences = [...started.values(), { name: bareLoop, server }].map(contender =>
      stack.use(new Audience(contender, tokens)),
    )
    const results: Result[] = []
    for (const count of counts) {
      const memory = new Map<string, number>()
      for (const audience of audiences) memory.set(audience.name, await audience.grow(count))
      await checkEqual(audiences)
      const rounds = Math.min(3, pace.rounds)
      for (const kind of kinds) {
        const samples = new Map(audiences.map(({ name }) => [name, [] as Sample[]]))
        for (let round = 0; round < rounds && (round === 0 || performance.now() < pace.deadline); round++) {
          for (const audience of audiences) {
            const sample = await audience.measure(kind, Math.max(1, deliveries[isQuick ? 'quick' : 'full'] / count))
            samples.get(audience.name)?.push({ ...sample, memory: memory.get(audience.name) ?? 0 })
          }
        }
        results.push({
          name: `subscriptions-${count}-${kind.name}`,
          title: `Subscriptions: ${kind.title}, ${count.toLocaleString('en')} sockets with ids of their own`,
          unit: 'delivery',
          note: 'A delivery is one event to one socket; times are until the last socket has the event; memory is what one idle socket with two subscriptions takes.',
          series: [...samples].map(([name, list]) => ({ name, samples: list })),
        })
      }
    }
    return results
  },
}

/** A server and the sockets that listen to it. */
class Audience implements AsyncDisposable {
  readonly name: string
  readonly #server: BenchServer
  readonly #subscribers = new Worker<SubscriberOrder>(join(import.meta.dirname, '..', 'core', 'subscriber-process.ts'))
  readonly #client: Client
  #count = 0
  #payloads: readonly string[] = []

  constructor({ name, server }: Contender, tokens: Tokens) {
    this.name = name
    this.#server = server
    this.#client = new Client(server.port)
    if (name === duet) this.#client.token = tokens.of(1)
  }

  /** Opens sockets until there are so many. Returns the bytes of memory that each of the new ones takes. */
  async grow(count: number): Promise<number> {
    const before = this.#server.memory()
    const added = count - this.#count
    const queries = kinds.map(({ query }) => query)
    await this.#subscribers.do({ do: 'open', port: this.#server.port, count, queries })
    await delay(1500) // subscriptions are not acknowledged
    this.#count = count
    return (this.#server.memory() - before) / added
  }

  /** What an event of each kind tells. The first events also warm up. */
  async payloads(): Promise<readonly string[]> {
    const payloads: string[] = []
    for (const kind of kinds) {
      await this.#cause(kind)
      const { sample } = await this.#subscribers.do<Received>({ do: 'wait', messages: this.#count })
      payloads.push(JSON.stringify(JSON.parse(sample).payload))
    }
    return payloads
  }

  /** The bare loop sends what it is given. */
  repeat(payloads: readonly string[]): void {
    this.#payloads = payloads
  }

  async measure(kind: Kind, events: number): Promise<Omit<Sample, 'memory'>> {
    const times: number[] = []
    const before = this.#server.cpu()
    const loadBefore = this.#subscribers.cpu()
    const start = performance.now()
    for (let event = 0; event < events; event++) {
      const sent = performance.now()
      const received = this.#subscribers.do<Received>({ do: 'wait', messages: this.#count })
      await this.#cause(kind)
      await received
      times.push(performance.now() - sent)
    }
    const seconds = (performance.now() - start) / 1000
    const delivered = events * this.#count
    times.sort((a, b) => a - b)
    return {
      perSecond: delivered / seconds,
      p50: times[times.length >> 1] ?? 0,
      p99: times.at(-1) ?? 0,
      cpu: (this.#server.cpu() - before) / delivered,
      databaseCpu: 0,
      loadShare: (this.#subscribers.cpu() - loadBefore) / 1e6 / seconds,
    }
  }

  async #cause(kind: Kind): Promise<void> {
    const at = kinds.indexOf(kind)
    const { status, body } =
      this.name === bareLoop
        ? await this.#client.send(`/${at}`, { method: 'POST', body: this.#payloads[at] ?? '' })
        : await this.#client.graphql(kind.mutation)
    if (status !== 200 || body.includes('"errors"')) throw new Error(`${this.name}: ${status} ${body}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client[Symbol.dispose]()
    await this.#subscribers[Symbol.asyncDispose]()
  }
}

/** Fails unless all tell the same of the same events. */
async function checkEqual(audiences: readonly Audience[]): Promise<void> {
  let expected: readonly string[] | undefined
  for (const audience of audiences) {
    if (expected !== undefined && audience.name === bareLoop) audience.repeat(expected)
    const payloads = await audience.payloads().catch(error => {
      throw new Error(`${audience.name}: ${error.message}`)
    })
    expected ??= payloads
    if (payloads.join('\n') !== expected.join('\n'))
      throw new Error(`${audience.name} tells other events\n${payloads.join('\n')}\n${expected.join('\n')}`)
  }
}
