import { once } from 'node:events'
import { WebSocket } from 'ws'
import { tagged } from './candidates.ts'
import { type Costs, leastOf, type Meter, nothing } from './measure.ts'
import { type Places, selectionsOfComments, selectionsOfPosts } from './selections.ts'

export interface SubscriptionCandidate {
  readonly name: string
  readonly text: string
  /** Makes an event of it. */
  readonly cause: string
}

export function subscriptions({ latest }: Places): readonly SubscriptionCandidate[] {
  const post = 'mutation { createPost(title: "T", content: "C") { id } }'
  const comment = `mutation { addComment(postId: ${latest}, text: "A remark") { id } }`
  return [
    ...selectionsOfPosts().map(([name, selection]) => ({
      name: `post added: ${name}`,
      text: `subscription { TAG: postAdded { ${selection} } }`,
      cause: post,
    })),
    ...selectionsOfComments().map(([name, selection]) => ({
      name: `comment added: ${name}`,
      text: `subscription { TAG: commentAdded(postId: ${latest}) { ${selection} } }`,
      cause: comment,
    })),
  ]
}

/** The cost of an event with one subscriber, minus its cost without subscribers. */
export async function costOfEvent(
  meter: Meter,
  port: number,
  { text, cause }: SubscriptionCandidate,
  times: number,
): Promise<Costs & { readonly status: string }> {
  let least: Costs | undefined
  let quiet: Costs | undefined
  for (let time = 0; time < times; time++) {
    const costs = await meter.costsOf(async () => void (await meter.client.graphql(cause)))
    quiet = quiet === undefined ? costs : leastOf(quiet, costs)
  }
  using subscriber = await Subscriber.open(port, meter.client.token)
  subscriber.subscribe(tagged(text, meter.tag()))
  // The beginning of a subscription is not announced.
  while (!subscriber.isTold && subscriber.refusal === undefined) {
    await meter.client.graphql(cause)
    await Promise.race([subscriber.told(), new Promise(resolve => setTimeout(resolve, 1000))])
  }
  for (let time = 0; time < times && subscriber.refusal === undefined; time++) {
    const costs = await meter.costsOf(async () => {
      const told = subscriber.told()
      await meter.client.graphql(cause)
      await told
    })
    least = least === undefined ? costs : leastOf(least, costs)
  }
  const status = subscriber.refusal ?? 'next'
  if (least === undefined || quiet === undefined) return { ...(quiet ?? nothing), status }
  // A stall and a peak of memory are of one moment, and not more because of what else the event caused.
  const { stall, memory } = least
  return {
    cpu: Math.max(0, least.cpu - quiet.cpu),
    databaseCpu: Math.max(0, least.databaseCpu - quiet.databaseCpu),
    thread: Math.max(0, least.thread - quiet.thread),
    stall,
    memory,
    database: Math.max(0, least.database - quiet.database),
    status,
  }
}

/** One socket with subscriptions. */
export class Subscriber implements Disposable {
  readonly #socket: WebSocket
  #waiting = Promise.withResolvers<void>()
  #last = 0
  isTold = false
  /** The code of the error that a subscription ended with, or how the socket was closed. */
  refusal: string | undefined

  static async open(port: number, token: string | undefined): Promise<Subscriber> {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws')
    await once(socket, 'open')
    const payload = token === undefined ? {} : { authorization: `Bearer ${token}` }
    socket.send(JSON.stringify({ type: 'connection_init', payload }))
    await once(socket, 'message')
    return new Subscriber(socket)
  }

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on('message', data => {
      const text = String(data)
      const { type } = JSON.parse(text.slice(0, 100).includes('"next"') ? '{"type":"next"}' : text) as { type: string }
      if (type === 'next') this.isTold = true
      else if (type === 'error') this.refusal = /"code":\s*"(\w+)"/.exec(text)?.[1] ?? 'error'
      else return
      this.#tell()
    })
    socket.on('error', () => {})
    socket.on('close', code => {
      this.refusal ??= `closed ${code}`
      this.#tell()
    })
  }

  subscribe(query: string): void {
    this.#socket.send(JSON.stringify({ id: String(++this.#last), type: 'subscribe', payload: { query } }))
  }

  /** The next message about any of them, or the end. */
  told(): Promise<void> {
    return this.#waiting.promise
  }

  #tell(): void {
    this.#waiting.resolve()
    this.#waiting = Promise.withResolvers()
  }

  [Symbol.dispose](): void {
    this.#socket.terminate()
  }
}
