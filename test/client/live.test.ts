import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { WebSocket as NodeSocket } from 'ws'
import { type Duet, graphql, live, mutate } from '../../client/src/index.ts'
import { startTestApp } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'
import type { Served } from '../support/http.ts'
import { freePort } from '../support/ports.ts'
import { createMember } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { waitUntil, within } from '../support/wait.ts'
import { connectTo, type PostAdded, postAdded, recorder } from './support.ts'

const env = { RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }
const password = 'right password'

/** A user who writes posts over HTTP, each with a title that no other has. */
async function writerOf(app: Served) {
  const { email } = await createMember(app)
  const { duet } = connectTo(app)
  await duet.signIn({ email, password })
  return writer(duet)
}

function writer(duet: Duet) {
  const titles: string[] = []
  const post = async (count = 1) => {
    const created = Array.from({ length: count }, () => `post ${++written}`)
    const fields = created.map((title, index) => `p${index}: createPost(title: "${title}", content: "x") { id }`)
    await graphql(duet).mutate(`mutation { ${fields.join(' ')} }`)
    titles.push(...created)
    return created
  }
  return { duet, titles, post }
}

let written = 0

/** WebSockets that a test can refuse to open. */
function network() {
  const state = { isDown: false, opened: 0 }
  class TestSocket extends WebSocket {
    constructor(url: string, protocol: string) {
      super(state.isDown ? 'ws://127.0.0.1:1' : url, protocol)
      state.opened++
    }
  }
  return { WebSocket: TestSocket, state }
}

describe('A subscription of the client', () => {
  const app = shared(() => startTestApp(env))
  let author: ReturnType<typeof writer>
  before(async () => {
    author = await writerOf(app)
  })

  for (const seen of [2, 0]) {
    it(`gets every event once and in order across a restart, after ${seen} events, including those from before it reconnected`, async () => {
      using folder = temporaryFolder()
      const own = { ...env, PORT: String(await freePort()), DATABASE_URL: `sqlite:${join(folder.path, 'duet.db')}` }
      const { WebSocket, state } = network()
      const { received, watcher, posts } = recorder()
      let author: ReturnType<typeof writer>
      let client: ReturnType<typeof connectTo> | undefined
      {
        await using first = await startTestApp(own)
        author = await writerOf(first)
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

  it('resumes after a position, and reports if the service no longer knows that position', async () => {
    using client = connectTo(app)
    const first = recorder()
    const { subscribe } = live(client.duet)
    const subscription = subscribe<PostAdded>(postAdded, {}, first.watcher)
    await waitUntil(() => first.received.includes('start'))
    await author.post()
    await waitUntil(() => first.posts().length === 1)
    const { position } = subscription
    subscription.close()
    const missed = await author.post(2)
    const next = recorder()
    subscribe<PostAdded>(postAdded, {}, { ...next.watcher, after: position })
    await waitUntil(() => next.received.length >= 2)
    assert.deepEqual(next.received, missed)

    const unknown = recorder()
    subscribe<PostAdded>(postAdded, {}, { ...unknown.watcher, after: 'an unknown position' })
    await waitUntil(() => unknown.received.includes('gap'))
    const later = await author.post()
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
    const author = writer(duet)
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
    await author.post()
    await waitUntil(() => posts().length === 1)
    await elsewhere.duet.signOut({ everywhere: true })
    await waitUntil(() => over.length > 0)
    assert.deepEqual(over, ['ended'])
    const titles = await author.post()
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

    const { createPost: post } = await mutate(author.duet, {
      createPost: { $: { title: 'T', content: 'x' }, id: true },
    })
    const ended = recorder()
    subscribe(comments, post, ended.watcher as never)
    await waitUntil(() => ended.received.includes('start'))
    await mutate(author.duet, { deletePost: { $: post } })
    await waitUntil(() => ended.received.includes('end'))
    assert.deepEqual([ended.received, ended.errors], [['start', 'end'], []])
    assert.equal(live(client.duet).state.state, 'idle')
  })

  it('without a WebSocket class fails with a message that says so', () => {
    using client = connectTo(app)
    const { WebSocket } = globalThis
    const subscribe = () => live(client.duet).subscribe(postAdded, {}, recorder().watcher)
    Reflect.deleteProperty(globalThis, 'WebSocket') // Node 20 has none
    try {
      assert.throws(subscribe, /Pass one to connect/)
    } finally {
      globalThis.WebSocket = WebSocket
    }
    subscribe().close()
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
