import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '../client.ts'
import { subscribeForAWhile } from './subscribers.ts'

/** Requests of ordinary and of unusual use, each kind with its percentage. */
export class Traffic {
  readonly #client: Client
  readonly #port: number
  /** Answers by status; what did not come, by its error. */
  readonly answers = new Map<number | string, number>()
  /** Some are underway for seconds. */
  readonly #underway = new Set<Promise<void>>()
  #sent = 0

  constructor(client: Client, port: number) {
    this.#client = client
    this.#port = port
  }

  /** Sends so many a second, whether or not answers come. */
  async flow(perSecond: number, ms: number): Promise<void> {
    const start = performance.now()
    for (let now = start; now < start + ms; now = performance.now()) {
      const due = Math.ceil(((now - start) / 1000) * perSecond)
      for (let sent = this.#sent; sent < due; sent++) this.#next()
      await delay(10)
    }
    this.#sent = 0
  }

  /** Waits for the running requests. */
  async settle(): Promise<void> {
    await Promise.all(this.#underway)
  }

  #next(): void {
    this.#sent++
    const act = urn[below(urn.length)] ?? pay
    const done = act(this.#client, this.#port)
      .then(
        answer => this.#count(answer),
        error => this.#count(`${error.code ?? error}`),
      )
      .finally(() => this.#underway.delete(done))
    this.#underway.add(done)
  }

  #count(answer: number | string): void {
    this.answers.set(answer, (this.answers.get(answer) ?? 0) + 1)
  }
}

type Act = (client: Client, port: number) => Promise<number | 'socket'>

const below = (most: number) => Math.floor(Math.random() * most)
const anyone = () => 1 + below(10)
const anyPost = () => 1 + below(1000)
let last = 0

const kinds: readonly (readonly [share: number, act: Act])[] = [
  [15, async client => (await client.send(`/users/${anyone()}`)).status],
  [3, async client => (await client.send(`/users?limit=${1 + below(100)}`)).status],
  [8, comeAndGo],
  [10, pay],
  [5, order],
  [20, async client => (await client.graphql(shapes())).status],
  [10, async client => (await client.graphql(page, { offset: below(1000) })).status],
  [5, write],
  [5, async client => (await client.graphql(`mutation { likePost(id: ${anyPost()}) { likes } }`)).status],
  [5, comment],
  [2, async (client, port) => subscribeForAWhile(port, client.token, 1000 + below(4000))],
  [10, mistake],
  [1, readSlowly],
  [0.5, logIn],
  [0.5, async client => (await client.send('/metrics')).status],
]

/** Each kind as many times as its share in two hundred. */
const urn: readonly Act[] = kinds.flatMap(([share, act]) => Array.from({ length: share * 2 }, () => act))

const page =
  'query ($offset: Int) { posts(limit: 5, offset: $offset) { id title author { name } comments(limit: 3) { text } } }'

/** A query with a new text: one of many shapes, with new names. */
function shapes(): string {
  const fields = ['id', 'title', 'likes', 'publishedAt', 'content'].filter(() => Math.random() < 0.5)
  const comments = Math.random() < 0.5 ? `c${++last}: comments(limit: ${below(5)}) { id text author { name } }` : ''
  return `{ p${++last}: posts(limit: ${1 + below(8)}, offset: ${below(500)}) { __typename ${fields.join(' ')} ${comments} } }`
}

/** A user who is created, changed and deleted. */
async function comeAndGo(client: Client): Promise<number> {
  const name = `Guest ${++last}`
  const { status, body } = await client.send('/users', {
    method: 'POST',
    body: { name, email: `guest${last}@example.com` },
  })
  if (status !== 201) return status
  const path = `/users/${(JSON.parse(body) as { id: number }).id}`
  await client.send(path, { method: 'PATCH', body: { age: below(100) } })
  return (await client.send(path, { method: 'DELETE' })).status
}

/** A payment, half of them sent twice. */
async function pay(client: Client): Promise<number> {
  const headers = { 'idempotency-key': randomUUID() }
  const once = () => client.send('/payments', { method: 'POST', headers, body: { amount: 1 + below(10_000) } })
  const { status } = await once()
  return Math.random() < 0.5 ? status : (await once()).status
}

/** An order that is paid or cancelled. */
async function order(client: Client): Promise<number> {
  const items = Array.from({ length: 1 + below(5) }, (_, at) => ({ name: `Item ${at}`, quantity: 1, price: 5 }))
  const { status, body } = await client.send(`/users/${anyone()}/orders`, { method: 'POST', body: { items } })
  if (status !== 201) return status
  const path = `/orders/${(JSON.parse(body) as { id: number }).id}`
  if (Math.random() < 0.5) return (await client.send(path, { method: 'DELETE' })).status
  return (await client.send(`${path}/payment`, { method: 'POST', body: {} })).status
}

/** A post that is published, and mostly deleted again. */
async function write(client: Client): Promise<number> {
  const mutation =
    'mutation ($content: String!) { createPost(title: "A title", content: $content) { id author { name } } }'
  const { status, body } = await client.graphql(mutation, { content: 'Some content. '.repeat(1 + below(300)) })
  if (status !== 200 || Math.random() < 0.1) return status
  const { data } = JSON.parse(body) as { data: { createPost: { id: string } } }
  return (await client.graphql(`mutation { deletePost(id: ${data.createPost.id}) }`)).status
}

async function comment(client: Client): Promise<number> {
  const mutation = `mutation ($text: String!) { addComment(postId: ${anyPost()}, text: $text) { id } }`
  return (await client.graphql(mutation, { text: 'A remark. '.repeat(1 + below(20)) })).status
}

async function mistake(client: Client): Promise<number> {
  const post = (path: string, body: unknown, headers = {}) => client.send(path, { method: 'POST', body, headers })
  const all = [
    () => client.send(`/users/${1_000_000 + below(1000)}`),
    () => client.send(`/nowhere/${++last}`),
    () => client.send('/users/1', { method: 'POST', body: {} }),
    () => post('/users', '{"name": '),
    () => post('/users', { name: '' }),
    () => post('/payments', { amount: 1 }),
    () => post('/users', `"${'x'.repeat(1_100_000)}"`),
    () => client.send('/users/me', { headers: { authorization: `Bearer ${randomUUID()}` } }),
    () => client.graphql(`{ posts { unknown${++last} } }`),
    () => client.graphql(`{ posts(limit: 1000) { id title x${++last}: content } }`),
    () => client.graphql(`mutation { likePost(id: ${1_000_000 + ++last}) { id } }`),
  ]
  return ((await all[below(all.length)]?.()) ?? { status: 0 }).status
}

async function logIn(client: Client): Promise<number> {
  const body = { email: 'user1@example.com', password: Math.random() < 0.5 ? 'a long password' : 'a wrong one' }
  return (await client.send('/tokens', { method: 'POST', body })).status
}

/** Asks for megabytes, reads a little of them and goes away. */
async function readSlowly(client: Client, port: number): Promise<'socket'> {
  const body = JSON.stringify({ query: `{ l${++last}: posts(limit: 900) { content } }` })
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  const head = [
    'POST /graphql HTTP/1.1',
    'Host: localhost',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ]
  if (client.token !== undefined) head.push(`Authorization: Bearer ${client.token}`)
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  socket.once('data', () => socket.pause())
  await delay(1000 + below(4000))
  socket.destroy()
  return 'socket'
}
