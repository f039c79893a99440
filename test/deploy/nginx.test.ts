import assert from 'node:assert/strict'
import { chmodSync } from 'node:fs'
import { describe, it, test } from 'node:test'
import { Nginx, nginxMissing } from '../../deploy/nginx.ts'
import { startTestApp } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'
import { query } from '../support/graphql.ts'
import { type Asked, ask as askAt } from '../support/http.ts'
import { createMember } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { SocketClient } from '../support/sockets.ts'

const skip = nginxMissing() ?? false
const settings = { TRUST_PROXY: '127.0.0.1', RATE_LIMIT_PATHS: '/', RATE_LIMIT_MAX: '20', METRICS_TOKEN: 'the-token' }

/** Two apps behind nginx, and a function that sends requests through it. */
async function start() {
  await using parts = new AsyncDisposableStack()
  const folder = parts.use(temporaryFolder())
  chmodSync(folder.path, 0o711) // nginx runs as another user
  const apps = [parts.use(await startTestApp(settings)), parts.use(await startTestApp(settings))] as const
  const nginx = parts.use(await Nginx.start(folder.path, [apps[0].port, apps[1].port]))
  const ask = (path: string, asked?: Asked) => askAt(nginx.url + path, { ca: nginx.certificate, ...asked })
  const all = parts.move()
  return { apps, nginx, ask, [Symbol.asyncDispose]: () => all.disposeAsync() }
}

describe('deploy/nginx.conf, in front of two instances', { skip }, () => {
  const proxy = shared(start)
  const ask: typeof proxy.ask = (...asked) => proxy.ask(...asked)

  it("serves Duet's answers over TLS, and hides the metrics, even from clients with the right token", async () => {
    const { status, headers, body } = await ask('/health/ready')
    assert.deepEqual([status, body], [200, '{"status":"ready"}'])
    assert.ok(headers.has('strict-transport-security') && headers.has('x-request-id'))
    const metrics = await ask('/metrics', { headers: { authorization: 'Bearer the-token' } })
    assert.deepEqual([metrics.status, metrics.body], [404, '{"error":"Not found"}'])
  })

  it('lets Duet refuse bodies that are too large, with its own error', async () => {
    const body = JSON.stringify({ name: 'x'.repeat(1.5 * 1024 * 1024) })
    const answer = await ask('/users', { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    assert.deepEqual([answer.status, typeof JSON.parse(answer.body).error], [413, 'string'])
  })

  it('passes the real client address to Duet, whatever address the client claims', async () => {
    let refused = 0
    for (let times = 0; times < 42; times++) {
      const headers = { 'x-forwarded-for': `192.0.2.${times}` }
      const { status } = await ask('/users', { headers, localAddress: '127.0.0.5' })
      if (status === 429) refused++
    }
    // Each of the two instances has a limit of twenty.
    assert.ok(refused >= 2, `${refused} of 42 were refused`)
    assert.equal((await ask('/users', { localAddress: '127.0.0.6' })).status, 200)
  })

  it('passes WebSockets on, with their messages in both directions', async () => {
    const members = await Promise.all(proxy.apps.map(createMember))
    const options = { ca: proxy.nginx.certificate, localAddress: '127.0.0.7' }
    using socket = await SocketClient.connect({ url: proxy.nginx.url }, options)
    const subscription = socket.begin('subscription { postAdded { title } }')
    const post = async (title: string) => {
      const mutation = `mutation { createPost(title: "${title}", content: "c") { title } }`
      await Promise.all(proxy.apps.map((app, index) => query(app, mutation, { token: members[index]?.token })))
      return title
    }
    await subscription.listening(post)
    await post('through nginx')
    assert.deepEqual(await subscription.received(1), [{ postAdded: { title: 'through nginx' } }])
    await socket.close()
  })
})

test('deploy/nginx.conf continues with one instance, uses one that is back at once, and answers with a JSON error if there is none', {
  skip,
}, async () => {
  await using proxy = await start()
  const { apps, ask } = proxy
  await apps[0][Symbol.asyncDispose]()
  for (let times = 0; times < 10; times++) assert.equal((await ask('/health/ready')).status, 200) // nginx learns of it
  await using again = await startTestApp({ ...settings, PORT: String(apps[0].port) })
  await apps[1][Symbol.asyncDispose]()
  for (let times = 0; times < 10; times++) {
    const { status } = await ask('/payments', { method: 'POST', localAddress: '127.0.0.8' })
    assert.equal(status, 400) // Duet's own refusal, of a payment without a key
  }
  await again[Symbol.asyncDispose]()
  const { status, headers, body } = await ask('/users')
  assert.deepEqual([status, headers.get('retry-after')], [503, '1'])
  assert.deepEqual(JSON.parse(body), { error: 'Service unavailable. Try again later.' })
})
