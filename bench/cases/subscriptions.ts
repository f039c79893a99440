import { join } from 'node:path'
import { Client } from '../client.ts'
import { peer, peerSettings } from '../core/contenders.ts'
import { isUncertain, turned } from '../core/measure.ts'
import type { Contender, Pace, Result, Sample, Series } from '../core/model.ts'
import { apollo, bareLoop, duet, mercurius, yoga } from '../core/names.ts'
import { kernelCpuOf } from '../core/processes.ts'
import { BenchServer, collected } from '../core/server.ts'
import { spreadOf } from '../core/statistics.ts'
import type { Received, SubscriberOrder } from '../core/subscriber-process.ts'
import type { Tokens } from '../core/tokens.ts'
import { Worker } from '../core/worker.ts'
import { fillSqlite } from '../plant.ts'
import type { Part } from './context.ts'

const kinds = [
  {
    name: 'small',
    title: 'an event with two fields',
    share: 1,
    query: 'subscription { postAdded { id title } }',
    mutation: 'mutation { createPost(title: "A title of a post", content: "Some content") { id } }',
  },
  {
    name: 'nested',
    title: 'an event with its post, ten comments and their authors',
    // The others take several times as long for it.
    share: 0.3,
    query: `subscription { commentAdded(postId: 1) {
      id text author { name } post { title author { name } comments { text author { name } } } } }`,
    mutation: 'mutation { addComment(postId: 1, text: "A remark") { id } }',
  },
] as const
type Kind = (typeof kinds)[number]

const counts = [1000, 10_000] as const
/** How much of the time that is left a case may use for more rounds: those after it are slower. */
const timeShares = { 1000: { small: 0.1, nested: 0.2 }, 10000: { small: 0.3, nested: 1 } } as const
const allCases = counts.flatMap(count =>
  kinds.map(kind => ({
    name: `subscriptions-${count}-${kind.name}`,
    title: `Subscriptions: ${kind.title}, ${count.toLocaleString('en')} sockets with ids of their own`,
    contenders: [duet, yoga, apollo, mercurius, bareLoop] as readonly string[],
    count,
    kind,
    timeShare: timeShares[count][kind.name],
  })),
)
type SubscriptionCase = (typeof allCases)[number]

/** Events to many sockets, each of which has ids of its own for its two subscriptions. */
export const subscriptions: Part = {
  name: 'subscriptions',
  cases: () => allCases,
  async run({ folder, tokens, pace, choose, starter }) {
    const cases = choose(allCases)
    await using stack = new AsyncDisposableStack()
    const template = join(folder, 'subscriptions.db')
    fillSqlite(template, 40, 10)
    const names = [...new Set(cases.flatMap(({ contenders }) => contenders))]
    const served = names.filter(name => name !== bareLoop)
    const started = [...(await starter(stack).start(served, template, { node: collected })).values()]
    if (names.includes(bareLoop)) {
      const server = stack.use(await BenchServer.start([...collected, peer('bare-sockets.mjs')], peerSettings))
      started.push({ name: bareLoop, server })
    }
    const audiences = started.map(contender => stack.use(new Audience(contender, tokens)))
    const results: Result[] = []
    for (const count of counts) {
      const wanted = cases.filter(each => each.count === count)
      const present = audiences.filter(({ name }) => wanted.some(({ contenders }) => contenders.includes(name)))
      await Promise.all(present.map(audience => audience.grow(count)))
      await checkEqual(present.filter(audience => !audience.isChecked))
      for (const each of wanted) {
        const now = performance.now()
        const deadline = now + (pace.deadline - now) * each.timeShare
        results.push(await measureOne(each, present, { ...pace, deadline }))
      }
    }
    return results
  },
}

async function measureOne(
  { name, title, contenders, count, kind }: SubscriptionCase,
  audiences: readonly Audience[],
  { rounds, deadline, deliveries, warm }: Pace,
): Promise<Result> {
  const present = audiences.filter(audience => contenders.includes(audience.name))
  const samples = new Map(present.map(audience => [audience.name, [] as Sample[]]))
  const series = () => [...samples].map(([name, list]) => ({ name, samples: list }))
  for (const audience of present) await audience.warmUp(kind, warm.mostCpuMs / 2)
  for (const audience of present) audience.startCounting()
  const events = Math.max(1, Math.floor((kind.share * deliveries) / count))
  let roundMs = 0
  for (let round = 0; round < rounds.most; round++) {
    const begun = performance.now()
    if (round >= rounds.least && (begun + roundMs > deadline || !isUncertain(series()))) break
    for (const audience of turned(present, round)) {
      samples.get(audience.name)?.push(await audience.measure(kind, events))
    }
    roundMs = performance.now() - begun
  }
  return { name, title, unit: 'delivery', note: floorOf(series(), present).join(' ') || undefined, series: series() }
}

/** What the kernel takes to send the bytes, and so how far any server can be below the cheapest of the others. */
function floorOf(series: readonly Series[], audiences: readonly Audience[]): readonly string[] {
  const loop = audiences.find(({ name }) => name === bareLoop)
  if (loop === undefined || loop.delivered === 0) return []
  const kernel = loop.kernelCpu / loop.delivered
  const share = `Of what the bare loop takes, ${kernel.toFixed(1)} µs are the kernel's, for one write to one socket: less is not possible with a write for each.`
  const others = series.filter(({ name }) => name !== duet && name !== bareLoop)
  if (others.length === 0) return [share]
  const costs = others.map(({ name, samples }) => ({ name, cpu: spreadOf(samples.map(({ cpu }) => cpu)).median }))
  const best = costs.reduce((a, b) => (a.cpu <= b.cpu ? a : b))
  return [share, `The best of the others, ${best.name}, takes ${(best.cpu / kernel).toFixed(1)} times that.`]
}

/** A server and the sockets that listen to it. */
class Audience implements AsyncDisposable {
  readonly name: string
  readonly #server: BenchServer
  readonly #subscribers = new Worker<SubscriberOrder>(join(import.meta.dirname, '..', 'core', 'subscriber-process.ts'))
  readonly #client: Client
  #count = 0
  #memoryWithout: number | undefined
  #memoryOfOne = 0
  /** What it cost to tell an event of each kind, in microseconds of CPU for one socket. */
  readonly #costs = new Map<Kind, number>()
  #payloads: readonly string[] = []
  isChecked = false
  /** Deliveries in the rounds of the case, and the kernel's part of the server's CPU in them. */
  delivered = 0
  kernelCpu = 0

  constructor({ name, server }: Contender, tokens: Tokens) {
    this.name = name
    this.#server = server
    this.#client = new Client(server.port)
    if (name === duet) this.#client.token = tokens.of(1)
  }

  /** Opens sockets until there are so many. */
  async grow(count: number): Promise<void> {
    this.#memoryWithout ??= await this.#server.idleMemory()
    const queries = kinds.map(({ query }) => query)
    await this.#subscribers.do({ do: 'open', port: this.#server.port, count, queries })
    // Subscriptions are not acknowledged: they are there when the server has no more to do.
    this.#memoryOfOne = ((await this.#server.idleMemory()) - this.#memoryWithout) / count
    this.#count = count
  }

  /** Tells events until that gets no cheaper. The dearest have made their code warm with fewer sockets before. */
  async warmUp(kind: Kind, mostMs: number): Promise<void> {
    const end = performance.now() + mostMs
    let before = this.#costs.get(kind) ?? Number.POSITIVE_INFINITY
    if (Number.isFinite(before) && (before * this.#count) / 1000 > mostMs) return
    for (let event = 0; event < mostWarmUpEvents && performance.now() < end; event++) {
      const { cpu } = await this.measure(kind, 1)
      if (event >= 2 && cpu > 0.97 * before) break
      before = cpu
    }
  }

  /** What an event of each kind tells. */
  async payloads(): Promise<readonly string[]> {
    const payloads: string[] = []
    for (const kind of kinds) {
      await this.#cause(kind)
      const { sample } = await this.#subscribers.do<Received>({ do: 'wait', messages: this.#count })
      payloads.push(JSON.stringify(JSON.parse(sample).payload))
    }
    this.isChecked = true
    return payloads
  }

  /** The bare loop sends what it is given. */
  repeat(payloads: readonly string[]): void {
    this.#payloads = payloads
  }

  startCounting(): void {
    this.delivered = 0
    this.kernelCpu = 0
  }

  async measure(kind: Kind, events: number): Promise<Sample> {
    const times: number[] = []
    const before = this.#server.cpu()
    const kernelBefore = kernelCpuOf(this.#server.pid)
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
    const cpu = (this.#server.cpu() - before) / delivered
    this.#costs.set(kind, cpu)
    this.delivered += delivered
    this.kernelCpu += kernelCpuOf(this.#server.pid) - kernelBefore
    return {
      perSecond: delivered / seconds,
      p50: times[times.length >> 1] ?? 0,
      p99: times.at(-1) ?? 0,
      cpu,
      memory: this.#memoryOfOne,
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

const mostWarmUpEvents = 20

/** Fails unless all tell the same of the same events. The bare loop repeats what the first of them tells. */
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
