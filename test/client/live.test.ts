import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { WebSocket as NodeSocket } from 'ws'
import { type Duet, graphql, type LiveState, live } from '../../client/src/index.ts'
import { startTestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { temporaryFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { createMember } from '../support/rest.ts'
import { metricOf } from '../support/sockets.ts'
import { waitUntil, within } from '../support/wait.ts'
import { connectTo, ManualClock, type PostAdded, postAdded, recorder } from './support.ts'

const env = { RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }
const password = 'right password'

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
    const short = { ...env, TOKEN_TTL_SECONDS: '4', ACCESS_POLICY: 'enforced', DEMO_DATA: 'true' }
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
    await waitUntil(() => renewals >= 2)
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
    await assert.rejects(within(failing.next(), 'the error'), { kind: 'badInput' })
    assert.deepEqual(await failing.next(), { done: true, value: undefined })
    const waiting = iterate(postAdded)
    const next = waiting.next()
    client.duet.close()
    assert.deepEqual(await within(next, 'the end'), { done: true, value: undefined })
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
    live(client.duet)
      .subscribe(postAdded, {}, recorder().watcher as never)
      .close()
    assert.equal(live(client.duet).state.state, 'idle', 'the refused one is forgotten')
  })

  it('over `ws` throws nothing when its socket fails, or is closed before it is open', async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    let opened = 0
    class Noted extends NodeSocket {
      constructor(url: string, protocol: string) {
        super(url, protocol)
        if (++opened === 1) return
        this.on('close', resolve)
        queueMicrotask(() => subscription.close())
      }
    }
    using client = connectTo({ url: `http://127.0.0.1:${await freePort()}` }, { WebSocket: Noted })
    const subscription = live(client.duet).subscribe<PostAdded>(postAdded, {}, recorder().watcher)
    await within(closed, 'the end of the second socket')
  })
})
