import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type Duet, type DuetError, graphql, type LiveState, live, type Watcher } from '../../client/src/index.ts'
import { startTestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { temporaryFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { createMember } from '../support/rest.ts'
import { metricOf } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'
import { connectTo, ManualClock } from './support.ts'

const env = { RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }
const password = 'right password'
const postAdded = 'subscription { postAdded { title } }'

interface PostAdded {
  readonly postAdded: { readonly title: string; readonly author?: { readonly email: string } }
}

type TestApp = Awaited<ReturnType<typeof startTestApp>>

/** A user who writes posts over HTTP. */
class Writer {
  readonly titles: string[] = []
  readonly #duet: Duet

  constructor(duet: Duet) {
    this.#duet = duet
  }

  static async of(app: TestApp) {
    const { email } = await createMember(app)
    const { duet } = connectTo(app)
    await duet.signIn({ email, password })
    return new Writer(duet)
  }

  async post(count = 1): Promise<readonly string[]> {
    const titles = Array.from({ length: count }, () => `post ${++written}`)
    const fields = titles.map((title, index) => `p${index}: createPost(title: "${title}", content: "x") { id }`)
    await graphql(this.#duet).mutate(`mutation { ${fields.join(' ')} }`)
    this.titles.push(...titles)
    return titles
  }

  /** A post that the test deletes while it is subscribed to its comments. */
  async postToDelete() {
    const { createPost } = await graphql(this.#duet).mutate<{ createPost: { id: string } }>(
      'mutation { createPost(title: "T", content: "x") { id } }',
    )
    const remove = () => graphql(this.#duet).mutate(`mutation { deletePost(id: "${createPost.id}") }`)
    return { id: createPost.id, remove }
  }
}

let written = 0

/** Records the callbacks of a subscription, in order. */
function recorder() {
  const received: string[] = []
  const errors: DuetError[] = []
  const watcher: Watcher<PostAdded> = {
    onData: data => received.push(data.postAdded.title),
    onReadAnew: why => received.push(why),
    onEnd: () => received.push('end'),
    onError: error => errors.push(error),
  }
  return { received, errors, watcher, posts: () => received.filter(each => each.startsWith('post')) }
}

/** WebSockets whose connections a test can cut, or refuse to open. */
function network() {
  const open = new Set<WebSocket>()
  const state = { isDown: false, opened: 0 }
  class TestSocket extends WebSocket {
    constructor(url: string, protocol: string) {
      super(state.isDown ? 'ws://127.0.0.1:1' : url, protocol)
      state.opened++
      open.add(this)
    }
  }
  const cut = () => {
    for (const socket of open) socket.close()
    open.clear()
  }
  return { WebSocket: TestSocket, state, cut }
}

function statesOf(duet: Duet): LiveState['state'][] {
  const states: LiveState['state'][] = []
  live(duet).onState(({ state }) => states.push(state))
  return states
}

describe('A subscription of the client', () => {
  let app: TestApp
  let writer: Writer
  before(async () => {
    app = await startTestApp(env)
    writer = await Writer.of(app)
  })
  after(() => app[Symbol.asyncDispose]())

  for (const seen of [2, 0]) {
    it(`gets every event once and in order across a restart, after ${seen} events, including those from before it reconnected`, async () => {
      using folder = temporaryFolder()
      const own = { ...env, PORT: String(await freePort()), DATABASE_URL: `sqlite:${join(folder.path, 'duet.db')}` }
      const { WebSocket, state } = network()
      const { received, watcher, posts } = recorder()
      let author: Writer
      let client: ReturnType<typeof connectTo> | undefined
      {
        await using first = await startTestApp(own)
        author = await Writer.of(first)
        await author.post(2)
        author.titles.length = 0 // they happened before
        client = connectTo(first, { WebSocket })
        live(client.duet).subscribe<PostAdded>(postAdded, {}, watcher)
        await waitUntil(() => received.includes('start'))
        if (seen > 0) await author.post(seen)
        await waitUntil(() => posts().length === seen)
        state.isDown = true
      }
      using _closed = client
      await waitUntil(() => live(client.duet).state.state === 'waiting')
      await using _second = await startTestApp(own)
      await author.post(3)
      state.isDown = false
      live(client.duet).retryNow()
      await waitUntil(() => live(client.duet).state.state === 'live')
      await author.post(2)
      await waitUntil(() => posts().at(-1) === author.titles.at(-1))
      assert.deepEqual(received, ['start', ...author.titles])
    })
  }

  it('reconnects by itself after a lost connection, and reports its state', async () => {
    const { WebSocket, state, cut } = network()
    using client = connectTo(app, { WebSocket })
    const states = statesOf(client.duet)
    const { received, watcher, posts } = recorder()
    const subscription = live(client.duet).subscribe<PostAdded>(postAdded, {}, watcher)
    assert.equal(live(client.duet).state.state, 'connecting')
    await waitUntil(() => received.includes('start'))
    const titles = [...(await writer.post())]
    await waitUntil(() => posts().length === 1)
    state.isDown = true
    cut()
    await waitUntil(() => states.includes('waiting'))
    const waiting = live(client.duet).state
    assert.ok(waiting.state !== 'waiting' || waiting.retryAt > Date.now() - 60_000)
    titles.push(...(await writer.post(2)))
    state.isDown = false
    await waitUntil(() => posts().length === 3)
    assert.deepEqual(received, ['start', ...titles])
    assert.notEqual(subscription.position, undefined)
    subscription.close()
    assert.deepEqual(
      [states.slice(0, 3), states.slice(-3)],
      [
        ['connecting', 'live', 'waiting'],
        ['connecting', 'live', 'idle'],
      ],
    )
    await waitUntil(async () => (await metricOf(app, 'duet_sockets')) === 0)
  })

  it('reports that events may be missing if it joined an open connection and is cut off before its first event', async () => {
    const { WebSocket, cut } = network()
    using client = connectTo(app, { WebSocket })
    const first = recorder()
    live(client.duet).subscribe<PostAdded>(postAdded, {}, first.watcher)
    await waitUntil(() => first.received.includes('start'))
    const before = await writer.post()
    await waitUntil(() => first.posts().length === 1)
    const { received, watcher, posts } = recorder()
    live(client.duet).subscribe<PostAdded>(postAdded, {}, watcher)
    await waitUntil(() => received.includes('start'))
    cut()
    await waitUntil(() => received.includes('gap'))
    const after = await writer.post()
    await waitUntil(() => posts().length === 1 && first.posts().length === 2)
    assert.deepEqual(
      [first.received, received],
      [
        ['start', ...before, ...after],
        ['start', 'gap', ...after],
      ],
    )
  })

  it('resumes after a position, and reports if the service no longer knows that position', async () => {
    using client = connectTo(app)
    const first = recorder()
    const { subscribe } = live(client.duet)
    const subscription = subscribe<PostAdded>(postAdded, {}, first.watcher)
    await waitUntil(() => first.received.includes('start'))
    await writer.post()
    await waitUntil(() => first.posts().length === 1)
    const { position } = subscription
    subscription.close()
    const missed = await writer.post(2)
    const next = recorder()
    subscribe<PostAdded>(postAdded, {}, { ...next.watcher, after: position })
    await waitUntil(() => next.received.length >= 2)
    assert.deepEqual(next.received, missed)

    const unknown = recorder()
    subscribe<PostAdded>(postAdded, {}, { ...unknown.watcher, after: 'an unknown position' })
    await waitUntil(() => unknown.received.includes('gap'))
    const later = await writer.post()
    await waitUntil(() => unknown.posts().length === 1)
    assert.deepEqual([unknown.received, unknown.errors], [['gap', ...later], []])
  })

  it("uses the session's token: it continues when its first token expires, and after signing in", async () => {
    const short = { ...env, TOKEN_TTL_SECONDS: '2', ACCESS_POLICY: 'enforced', DEMO_DATA: 'true' }
    await using shortLived = await startTestApp(short)
    const { WebSocket, state } = network()
    using client = connectTo(shortLived, { WebSocket })
    const { duet } = client
    const refused = recorder()
    const withEmail = 'subscription { postAdded { title author { email } } }'
    live(duet).subscribe<PostAdded>(withEmail, {}, refused.watcher)
    await waitUntil(() => refused.errors.length > 0)
    assert.equal(refused.errors[0]?.kind, 'unauthenticated')

    const { received, errors, watcher, posts } = recorder()
    live(duet).subscribe<PostAdded>(postAdded, {}, watcher)
    await waitUntil(() => received.includes('start'))
    await duet.signIn({ email: 'ada@example.com', password: 'demo-password' })
    const asAdmin = recorder()
    live(duet).subscribe<PostAdded>(withEmail, {}, asAdmin.watcher)
    await waitUntil(() => asAdmin.received.includes('start'))
    const author = new Writer(duet)
    let renewals = 0
    duet.onSession((_session, change) => {
      renewals += change === 'renewed' ? 1 : 0
    })
    await author.post()
    await waitUntil(() => renewals >= 4)
    await author.post()
    const last = author.titles.at(-1)
    await waitUntil(() => posts().at(-1) === last && asAdmin.posts().at(-1) === last)
    assert.deepEqual([posts(), asAdmin.posts()], [author.titles, author.titles])
    assert.deepEqual([errors, asAdmin.errors], [[], []])
    assert.ok(state.opened >= 4, `${state.opened} sockets`)
  })

  it('ends the session when the service closes its socket, and continues without a token', async () => {
    const { email } = await createMember(app)
    const over: string[] = []
    using client = connectTo(app, { onSignedOut: why => over.push(why) })
    using elsewhere = connectTo(app)
    await Promise.all([client, elsewhere].map(({ duet }) => duet.signIn({ email, password })))
    const { received, watcher, posts } = recorder()
    live(client.duet).subscribe<PostAdded>(postAdded, {}, watcher)
    await waitUntil(() => received.includes('start'))
    await writer.post()
    await waitUntil(() => posts().length === 1)
    await elsewhere.duet.signOut({ everywhere: true })
    await waitUntil(() => over.length > 0)
    assert.deepEqual(over, ['ended'])
    const titles = await writer.post()
    await waitUntil(() => posts().length === 2)
    assert.deepEqual(posts().slice(1), titles)
  })

  it('ends with an error if a retry cannot succeed, and when its post is deleted', async () => {
    using client = connectTo(app)
    const { subscribe } = live(client.duet)
    const invalid = recorder()
    subscribe<PostAdded>('subscription { nothing }', {}, invalid.watcher)
    await waitUntil(() => invalid.errors.length > 0)
    const [error] = invalid.errors
    assert.deepEqual([error?.kind, error?.code], ['badInput', 'GRAPHQL_VALIDATION_FAILED'])
    const comments = 'subscription ($id: ID!) { commentAdded(postId: $id) { text } }'
    const absent = recorder()
    subscribe(comments, { id: '999999' }, absent.watcher as never)
    await waitUntil(() => absent.errors.length > 0)
    assert.equal(absent.errors[0]?.kind, 'notFound')

    const { id, remove } = await writer.postToDelete()
    const ended = recorder()
    subscribe(comments, { id }, ended.watcher as never)
    await waitUntil(() => ended.received.includes('start'))
    await remove()
    await waitUntil(() => ended.received.includes('end'))
    assert.deepEqual([ended.received, ended.errors], [['start', 'end'], []])
    assert.equal(live(client.duet).state.state, 'idle')
  })

  it('shares one socket with the other subscriptions of its connection', async () => {
    const { WebSocket, state } = network()
    using client = connectTo(app, { WebSocket })
    const all = Array.from({ length: 3 }, () => recorder())
    for (const { watcher } of all) live(client.duet).subscribe<PostAdded>(postAdded, {}, watcher)
    await waitUntil(() => all.every(({ received }) => received.includes('start')))
    const later = recorder()
    const subscription = live(client.duet).subscribe<PostAdded>(postAdded, {}, later.watcher)
    await waitUntil(() => later.received.includes('start'))
    subscription.close()
    const titles = await writer.post()
    await waitUntil(() => all.every(({ posts }) => posts().length === 1))
    assert.deepEqual([later.received, all[0]?.posts(), state.opened], [['start'], titles, 1])
  })

  it('waits and subscribes again if the rate limit refuses it', async () => {
    const serverClock = new TestClock()
    const limit = { RATE_LIMIT_MAX: '1', RATE_LIMIT_WINDOW_MS: '5000' }
    await using limited = await startTestApp({ ...env, ...limit }, { clock: serverClock })
    const clock = new ManualClock(0)
    using client = connectTo(limited, { clock })
    const { errors, received, watcher } = recorder()
    live(client.duet).subscribe<PostAdded>(postAdded, {}, watcher)
    await waitUntil(() => clock.due.some(milliseconds => milliseconds > 1000 && milliseconds < 2000))
    serverClock.pass(10_000)
    clock.pass(2000)
    await waitUntil(async () => (await metricOf(limited, 'duet_subscriptions')) === 1)
    // It begins where the socket was accepted, although the refusal came later. So nothing is missing.
    assert.deepEqual([errors, received], [[], ['start']])
  })

  it('as an iterator returns its events in order, ends with the loop, and throws its error', async () => {
    using client = connectTo(app)
    const started: string[] = []
    const { iterate, state } = live(client.duet)
    assert.equal(state.state, 'idle')
    const events = iterate<PostAdded>(postAdded, {}, { onReadAnew: why => started.push(why) })
    await waitUntil(() => started.length > 0)
    const titles = await writer.post(3)
    const seen: string[] = []
    for await (const event of events) if (seen.push(event.postAdded.title) === 3) break
    assert.deepEqual([seen, live(client.duet).state.state], [titles, 'idle'])
    assert.deepEqual(await events.next(), { done: true, value: undefined })
    const failing = iterate('subscription { nothing }')
    await assert.rejects(failing.next(), { kind: 'badInput' })
    assert.deepEqual(await failing.next(), { done: true, value: undefined })
    const waiting = iterate(postAdded)
    const next = waiting.next()
    client.duet.close()
    assert.deepEqual(await next, { done: true, value: undefined })
  })

  it('without a WebSocket class fails with a message that says so', () => {
    using client = connectTo(app)
    const { WebSocket } = globalThis
    try {
      // Node 20 has no global WebSocket.
      Reflect.deleteProperty(globalThis, 'WebSocket')
      assert.throws(
        () => live(client.duet).subscribe(postAdded, {}, recorder().watcher as never),
        /Pass one to connect/,
      )
    } finally {
      globalThis.WebSocket = WebSocket
    }
  })
})

/** A WebSocket without a network. The test plays the service. */
class FakeSocket {
  static readonly all: FakeSocket[] = []
  onopen: ((event: never) => void) | null = null
  onmessage: ((event: { data: string }) => void) | null = null
  onclose: ((event: { code: number }) => void) | null = null
  onerror: ((event: never) => void) | null = null
  readonly sent: { type: string; id?: string; payload?: { number?: number; extensions?: object } }[] = []

  constructor(_url: string, _protocol: string) {
    FakeSocket.all.push(this)
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text))
  }

  close(): void {}

  say(message: object): void {
    this.onmessage?.({ data: JSON.stringify(message) })
  }

  /** Opens the socket, tells the position if it is a service that does so, and answers its first ping. */
  accept(position?: string): void {
    this.onopen?.(undefined as never)
    this.say({ type: 'connection_ack', ...(position !== undefined && { payload: { position } }) })
    this.pong()
  }

  /** The extensions of its last subscription. */
  get begun(): object | undefined {
    return this.sent.findLast(({ type }) => type === 'subscribe')?.payload?.extensions
  }

  pong(): void {
    const { payload } = this.sent.findLast(({ type }) => type === 'ping') ?? assert.fail('no ping')
    this.say({ type: 'pong', payload })
  }
}

describe('The socket of the client', () => {
  async function start() {
    FakeSocket.all.length = 0
    const clock = new ManualClock(0)
    const client = connectTo({ url: 'http://duet.test' }, { clock, WebSocket: FakeSocket })
    const recorded = recorder()
    live(client.duet).subscribe<PostAdded>(postAdded, {}, recorded.watcher)
    const next = async () => {
      const known = FakeSocket.all.length
      await waitUntil(() => {
        if (FakeSocket.all.length === known) clock.pass(30_000)
        return FakeSocket.all.length > known
      })
      return FakeSocket.all.at(-1) ?? assert.fail()
    }
    await waitUntil(() => FakeSocket.all.length === 1)
    const [socket = assert.fail()] = FakeSocket.all
    return { clock, client, next, socket, ...recorded }
  }

  it('is opened anew with the token of a user who signs in while it is being opened', async () => {
    FakeSocket.all.length = 0
    let kept: string | undefined
    let changed = () => {}
    const watch = (heard: () => void) => {
      changed = heard
    }
    const storage = { get: () => kept, set: () => {}, watch }
    const client = connectTo({ url: 'http://duet.test' }, { clock: new ManualClock(0), WebSocket: FakeSocket, storage })
    live(client.duet).subscribe<PostAdded>(postAdded, {}, recorder().watcher)
    await waitUntil(() => FakeSocket.all.length === 1)
    kept = `x.${btoa('{"sub":"1","role":"member","iat":0,"exp":3600}')}.x`
    changed() // another tab
    await waitUntil(() => FakeSocket.all.length === 2)
    const second = FakeSocket.all.at(-1)
    second?.accept()
    assert.deepEqual(second?.sent[0]?.payload, { Authorization: `Bearer ${kept}`, positions: true })
    client.duet.close()
  })

  it('is not opened for a subscription that was closed meanwhile, nor twice for the next one', async () => {
    FakeSocket.all.length = 0
    using client = connectTo({ url: 'http://duet.test' }, { clock: new ManualClock(0), WebSocket: FakeSocket })
    const subscribe = () => live(client.duet).subscribe<PostAdded>(postAdded, {}, recorder().watcher)
    subscribe().close()
    await new Promise(setImmediate)
    assert.equal(FakeSocket.all.length, 0)
    subscribe().close()
    subscribe()
    await new Promise(setImmediate)
    assert.equal(FakeSocket.all.length, 1)
  })

  it('is closed if the service sends nothing for too long', async () => {
    const { clock, client, socket } = await start()
    socket.accept()
    assert.equal(live(client.duet).state.state, 'live')
    clock.pass(20_000)
    socket.pong()
    clock.pass(20_000)
    assert.equal(live(client.duet).state.state, 'live')
    clock.pass(10_000)
    const { state } = live(client.duet)
    assert.deepEqual([state.state, clock.due.length], ['waiting', 1])
    client.duet.close()
    assert.deepEqual(clock.due, [])
  })

  it('is closed if the service does not accept it in time', async () => {
    const { clock, client, socket } = await start()
    socket.onopen?.(undefined as never)
    clock.pass(10_000)
    assert.equal(live(client.duet).state.state, 'waiting')
    client.duet.close()
  })

  for (const text of [
    'no JSON',
    'null',
    '{"type":"next","id":"1"}',
    '{"type":"error","id":"1","payload":{}}',
    '{"type":"connection_ack"}',
  ]) {
    it(`is closed after a message that the service never sends: ${text}`, async () => {
      const { client, socket } = await start()
      socket.accept()
      socket.onmessage?.({ data: text })
      assert.equal(live(client.duet).state.state, 'waiting')
      client.duet.close()
    })
  }

  it('does not resubscribe forever if the service refuses a position that the client never received', async () => {
    const { client, socket, errors } = await start()
    socket.accept()
    socket.say({
      type: 'error',
      id: '1',
      payload: [{ message: 'Unknown', extensions: { code: 'POSITION_UNKNOWN' } }],
    })
    assert.equal(errors[0]?.code, 'POSITION_UNKNOWN')
    assert.equal(socket.sent.filter(({ type }) => type === 'subscribe').length, 1)
    client.duet.close()
  })

  it('answers pings of the service', async () => {
    const { client, socket } = await start()
    socket.accept()
    socket.say({ type: 'ping', payload: { a: 1 } })
    assert.deepEqual(socket.sent.at(-1), { type: 'pong', payload: { a: 1 } })
    client.duet.close()
  })

  it('is reopened after pauses that grow with each failure, and are short again after a stable connection', async () => {
    const { clock, client, socket, next } = await start()
    const pauses: number[] = []
    let current = socket
    for (let failures = 0; failures < 10; failures++) {
      current.onclose?.({ code: 1006 })
      pauses.push(Math.min(...clock.due))
      current = await next()
    }
    for (const [index, pause] of pauses.entries()) {
      const most = Math.min(250 * 2 ** index, 30_000)
      assert.ok(pause >= most / 2 && pause <= most, `${index}: ${pause}`)
    }
    current.accept()
    clock.pass(15_000)
    live(client.duet).subscribe<PostAdded>(postAdded, {}, recorder().watcher)
    current.pong() // a later subscription does not make the connection a new one
    current.onclose?.({ code: 1001 })
    assert.ok(Math.min(...clock.due) <= 250)
    client.duet.close()
  })

  it('subscribes again after pauses that grow with each refusal, and are short again after an event', async () => {
    const { clock, client, socket } = await start()
    socket.accept()
    const latest = () => socket.sent.findLast(({ type }) => type === 'subscribe')?.id
    const tooMany = [{ message: 'Too many', extensions: { code: 'RATE_LIMITED' } }]
    const refuse = () => {
      socket.say({ type: 'error', id: latest(), payload: tooMany })
      const pause = clock.due.find(milliseconds => milliseconds > 1000 && milliseconds !== 20_000) ?? assert.fail()
      clock.pass(pause)
      socket.pong()
      return pause - 1000
    }
    const pauses = [refuse(), refuse(), refuse(), refuse()]
    for (const [index, pause] of pauses.entries()) assert.ok(pause >= 125 * 2 ** index && pause <= 250 * 2 ** index)
    socket.say({ type: 'next', id: latest(), payload: { data: { postAdded: { title: 'post' } } } })
    assert.ok(refuse() <= 250)
    const other = live(client.duet).subscribe<PostAdded>(postAdded, {}, recorder().watcher)
    const id = latest()
    socket.say({ type: 'error', id, payload: tooMany })
    other.close()
    clock.pass(2000)
    assert.equal(latest(), id, 'a closed one does not')
    client.duet.close()
  })

  it('resumes after the last event, and reads the data again if the database has lost events', async () => {
    const { client, socket, next, received } = await start()
    socket.accept()
    const { id } = socket.sent.find(({ type }) => type === 'subscribe') ?? assert.fail()
    const event = { data: { postAdded: { title: 'post' } }, extensions: { position: 'p1' } }
    socket.say({ type: 'next', id, payload: event })
    socket.onclose?.({ code: 1001 })
    const second = await next()
    second.accept()
    const resumed = second.sent.find(({ type }) => type === 'subscribe')
    assert.deepEqual(resumed?.payload?.extensions, { after: 'p1' })
    second.say({ type: 'next', id, payload: event }) // it answers the first attempt, so it is ignored
    second.onclose?.({ code: 1012 })
    const third = await next()
    third.accept()
    const anew = third.sent.find(({ type }) => type === 'subscribe')
    assert.deepEqual(anew?.payload?.extensions, { positions: true })
    assert.deepEqual(received, ['start', 'post', 'gap'])
    client.duet.close()
  })

  it('begins where the first socket was accepted, also on the next socket, but not after a loss of events', async () => {
    const { client, socket, next, received } = await start()
    socket.accept('p0')
    assert.deepEqual(socket.sent[0], { type: 'connection_init', payload: { positions: true } })
    assert.deepEqual(socket.begun, { after: 'p0' })
    socket.onclose?.({ code: 1006 })
    const second = await next()
    second.accept('p7')
    assert.deepEqual([second.begun, received], [{ after: 'p0' }, ['start']])
    second.onclose?.({ code: 1012 })
    const third = await next()
    third.accept('p5')
    assert.deepEqual([third.begun, received], [{ after: 'p5' }, ['start', 'gap']])
    client.duet.close()
  })

  it('reports that events may be missing if the service told no position before it was cut off', async () => {
    const { client, socket, next, received } = await start()
    socket.accept()
    socket.onclose?.({ code: 1006 })
    const second = await next()
    second.accept()
    assert.deepEqual([second.begun, received], [{ positions: true }, ['start', 'gap']])
    client.duet.close()
  })

  it('stops at the limit of buffered events of an iterator, and resumes after the last one', async () => {
    const { client, socket } = await start()
    socket.accept()
    const events = live(client.duet).iterate<PostAdded>(postAdded)
    const begun = () => socket.sent.findLast(({ type }) => type === 'subscribe') ?? assert.fail()
    const { id } = begun()
    const payloadOf = (number: number) => ({
      data: { postAdded: { title: `post ${number}` } },
      extensions: { position: `p${number}` },
    })
    // The events after the thousandth were sent before the service got the complete message.
    for (let number = 1; number <= 1010; number++) socket.say({ type: 'next', id, payload: payloadOf(number) })
    assert.deepEqual(socket.sent.at(-1), { type: 'complete', id })
    const titles: string[] = []
    for await (const { postAdded: post } of events) {
      if (titles.push(post.title) === 1002) break
      if (titles.length !== 1000) continue
      assert.equal(begun().id, id, 'nothing is requested while events wait')
      setImmediate(() => {
        assert.deepEqual(begun().payload?.extensions, { after: 'p1000' })
        for (const number of [1001, 1002])
          setImmediate(() => socket.say({ type: 'next', id: begun().id, payload: payloadOf(number) }))
      })
    }
    assert.deepEqual(titles.slice(-3), ['post 1000', 'post 1001', 'post 1002'])
    assert.equal(socket.sent.filter(({ type }) => type === 'subscribe').length, 3)
    client.duet.close()
  })

  it('gives the events of an iterator before its error', async () => {
    const { client, socket } = await start()
    socket.accept()
    const events = live(client.duet).iterate<PostAdded>(postAdded)
    const { id } = socket.sent.findLast(({ type }) => type === 'subscribe') ?? assert.fail()
    const data = { postAdded: { title: 'before the error' } }
    socket.say({ type: 'next', id, payload: { data } })
    socket.say({ type: 'error', id, payload: [{ message: 'no', extensions: { code: 'FORBIDDEN' } }] })
    assert.deepEqual(await events.next(), { done: false, value: data })
    await assert.rejects(events.next(), { kind: 'forbidden' })
    client.duet.close()
  })

  it('asks on the next socket for no events of an iterator that has enough, until they are used', async () => {
    const { client, socket, next } = await start()
    socket.accept()
    const events = live(client.duet).iterate<PostAdded>(postAdded)
    const { id } = socket.sent.findLast(({ type }) => type === 'subscribe') ?? assert.fail()
    const data = { postAdded: { title: 'post' } }
    for (let number = 1; number <= 1000; number++)
      socket.say({ type: 'next', id, payload: { data, extensions: { position: `p${number}` } } })
    socket.onclose?.({ code: 1006 })
    const second = await next()
    second.accept()
    assert.deepEqual(
      [second.sent.filter(({ type }) => type === 'subscribe').length, second.begun],
      [1, { positions: true }],
    )
    let used = 0
    for await (const _ of events) if (++used === 1000) break
    client.duet.close()
  })
})
