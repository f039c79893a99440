import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Client, createClient } from 'graphql-ws'
import { WebSocket } from 'ws'
import { startTestApp } from '../support/app.ts'
import { createMember } from '../support/rest.ts'
import { metricOf } from '../support/sockets.ts'
import { waitUntil, within } from '../support/wait.ts'

const create = 'mutation ($t: String!) { createPost(title: $t, content: $t) { id } }'

/** The data of the one answer that an operation gets. */
async function once(client: Client, query: string, variables: Record<string, unknown> = {}): Promise<unknown> {
  const { value } = await within(client.iterate({ query, variables }).next(), `an answer to ${query}`)
  return value?.data
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
  test(`R-GQL-4: graphql-ws on ${name} sends queries, mutations and subscriptions over one socket, with its token`, async () => {
    await using app = await startTestApp({ RATE_LIMIT_MAX: '0' })
    const { token, id } = await createMember(app)
    let connections = 0
    const client = createClient({
      url: `${app.url.replace(/^http/, 'ws')}/graphql`,
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
}
