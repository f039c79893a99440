import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Client, CloseCode, createClient } from 'graphql-ws'
import { WebSocket } from 'ws'
import { startTestApp } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { tokenKeys } from '../support/keys.ts'
import { freePort } from '../support/ports.ts'
import { createMember } from '../support/rest.ts'
import { metricOf } from '../support/sockets.ts'
import { waitUntil, within } from '../support/wait.ts'

const unlimited = { RATE_LIMIT_MAX: '0' }
const create = 'mutation ($t: String!) { createPost(title: $t, content: $t) { id } }'

function addressOf({ url }: { readonly url: string }): string {
  return `${url.replace(/^http/, 'ws')}/graphql`
}

/** The data of the one answer that an operation gets. */
async function once(client: Client, query: string, variables?: Record<string, unknown>): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>()
  let answer: unknown
  client.subscribe(variables === undefined ? { query } : { query, variables }, {
    next: ({ data }) => {
      answer = data
    },
    error: reject,
    complete: () => resolve(answer),
  })
  return within(promise, `the end of ${query}`)
}

/** Collects the received events of a subscription. */
function listen(
  client: Client,
  query: string,
): { readonly received: unknown[]; stop(): void; readonly ended: () => unknown } {
  const received: unknown[] = []
  let ended: unknown
  const stop = client.subscribe(
    { query },
    {
      next: ({ data }) => received.push(data),
      error: error => {
        ended = error
      },
      complete: () => {
        ended = 'complete'
      },
    },
  )
  return { received, stop, ended: () => ended }
}

// The same client on two implementations of WebSocket. Node's own one behaves like that of a browser.
for (const [name, webSocketImpl] of [
  ['ws', WebSocket],
  ["Node's own WebSocket", globalThis.WebSocket],
] as const) {
  describe(`graphql-ws on ${name}`, () => {
    it('R-GQL-4: sends queries, mutations and subscriptions over one socket, with its token', async () => {
      await using app = await startTestApp(unlimited)
      const { token, id } = await createMember(app)
      let connections = 0
      const client = createClient({
        url: addressOf(app),
        webSocketImpl,
        lazy: false,
        connectionParams: async () => ({ Authorization: `Bearer ${token}` }),
        on: { connected: () => connections++ },
      })
      assert.deepEqual(await once(client, 'query Me { me { id } }'), { me: { id: String(id) } })
      const titles = listen(client, 'subscription { postAdded { title author { id } } }')
      const other = listen(client, 'subscription { postAdded { id } }')
      await waitUntil(async () => (await metricOf(app, 'duet_subscriptions')) === 2)
      for (let n = 0; n < 5; n++) await once(client, create, { t: `post ${n}` })
      await waitUntil(() => titles.received.length === 5 && other.received.length === 5)
      assert.deepEqual(titles.received[4], { postAdded: { title: 'post 4', author: { id: String(id) } } })
      titles.stop()
      await waitUntil(async () => (await metricOf(app, 'duet_subscriptions')) === 1)
      await once(client, create, { t: 'post 5' })
      await waitUntil(() => other.received.length === 6)
      assert.deepEqual([titles.received.length, titles.ended(), other.ended()], [5, 'complete', undefined])
      assert.equal(connections, 1)
      await client.dispose()
      await waitUntil(async () => (await metricOf(app, 'duet_sockets')) === 0)
    })

    it('gets the errors of an operation, and a close code for an invalid token', async () => {
      await using app = await startTestApp(unlimited)
      const client = createClient({ url: addressOf(app), webSocketImpl })
      await assert.rejects(once(client, '{ me { id } }'), ([error]: { extensions: { code: string } }[]) => {
        assert.equal(error?.extensions.code, 'UNAUTHENTICATED')
        return true
      })
      await client.dispose()
      const intruder = createClient({
        url: addressOf(app),
        webSocketImpl,
        connectionParams: { Authorization: 'Bearer nonsense' },
        retryAttempts: 0,
      })
      await assert.rejects(once(intruder, '{ __typename }'), (event: { code: number }) => {
        assert.equal(event.code, CloseCode.Forbidden)
        return true
      })
    })

    it('reconnects after a restart and after maintenance, and gets further events', async () => {
      await using parts = new AsyncDisposableStack()
      const database = parts.use(await sqlite.create())
      const port = await freePort()
      const settings = {
        ...unlimited,
        PORT: `${port}`,
        DATABASE_URL: `sqlite:${database.location}`,
        TOKEN_KEYS: tokenKeys,
      }
      let app = await startTestApp(settings)
      parts.defer(() => app[Symbol.asyncDispose]())
      const { token } = await createMember(app)
      const codes: unknown[] = []
      const client = createClient({
        url: addressOf(app),
        webSocketImpl,
        lazy: false,
        connectionParams: { Authorization: `Bearer ${token}` },
        retryAttempts: Number.POSITIVE_INFINITY, // a start may take long on a busy machine
        retryWait: () => new Promise(resolve => setTimeout(resolve, 20)),
        shouldRetry: () => true,
        on: { closed: event => codes.push((event as { code: number }).code) },
      })
      parts.defer(() => client.dispose())
      const posts = listen(client, 'subscription { postAdded { title } }')
      const listens = () => waitUntil(async () => (await metricOf(app, 'duet_subscriptions')) === 1)
      const tells = async (title: string) => {
        await listens()
        await once(client, create, { t: title })
        await waitUntil(() => posts.received.length > 0)
        assert.deepEqual(posts.received.splice(0), [{ postAdded: { title } }])
      }
      await tells('before')
      await app[Symbol.asyncDispose]()
      app = await startTestApp(settings)
      await tells('after the restart')
      await app.app.toggleMaintenance()
      await waitUntil(() => codes.includes(1013))
      await app.app.toggleMaintenance()
      await tells('after the maintenance')
      assert.equal(codes[0], 1001)
    })
  })
}
