import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Client, createClient } from 'graphql-ws'
import { WebSocket } from 'ws'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { postgres } from '../support/engines.ts'
import { createMember } from '../support/rest.ts'
import { metricOf, SocketClient } from '../support/sockets.ts'
import { waitUntil, within } from '../support/wait.ts'
import { newPost } from './posts.ts'

const create = 'mutation ($t: String!) { createPost(title: $t, content: $t) { id } }'

/** The data of the one answer that an operation gets. */
async function once(client: Client, query: string, variables: Record<string, unknown> = {}): Promise<unknown> {
  const { value } = await within(client.iterate({ query, variables }).next(), `an answer to ${query}`)
  return value?.data
}

/** Collects the received events of a subscription, and how it ended. */
function listen(client: Client, query: string) {
  const [received, ends]: [unknown[], unknown[]] = [[], []]
  const stop = client.subscribe(
    { query },
    {
      next: ({ data }) => received.push(data),
      error: error => ends.push(error),
      complete: () => ends.push('complete'),
    },
  )
  return { received, ends, stop }
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
    assert.deepEqual([titles.received.length, titles.ends, other.ends], [5, ['complete'], []])
    assert.equal(connections, 1)
    await client.dispose()
    await waitUntil(async () => (await metricOf(app, 'duet_sockets')) === 0)
  })
}

/** graphql-ws as it is: it sends its payload again on each connection, so it resumes if its last position is in there. */
function resuming(url: string, retryWait: () => Promise<void>) {
  const ids: string[] = []
  const troubles: unknown[] = []
  const payload: { query: string; extensions?: Record<string, unknown> } = {
    query: 'subscription { postAdded { id } }',
  }
  const client = createClient({
    url: `${url.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { positions: true },
    retryAttempts: 1,
    retryWait,
    on: {
      connected: (_socket, now) => {
        payload.extensions ??= { after: (now as { position?: string }).position }
      },
    },
  })
  client.subscribe<{ postAdded: { id: string } }>(payload, {
    next: ({ data, extensions }) => {
      ids.push(data?.postAdded.id ?? '')
      payload.extensions = { after: (extensions as { position: string }).position }
    },
    error: error => troubles.push(error),
    complete: () => {},
  })
  return { client, ids, troubles, payload }
}

test('80 clients of graphql-ws that are cut off and resume at once wait their turn: each gets every event once and in order, and no error', {
  skip: postgres.skip,
}, async () => {
  const settings = { DATABASE_POOL_MAX: '2', DATABASE_TIMEOUT_MS: '1000', RATE_LIMIT_MAX: '0', THREADS: '1' }
  await using app = await startTestAppOn(postgres, settings)
  using writer = await SocketClient.connect(app, await createMember(app))
  const back = Promise.withResolvers<void>()
  const all = Array.from({ length: 80 }, () => resuming(app.url, () => back.promise))
  await waitUntil(() => all.every(({ payload }) => payload.extensions !== undefined))
  const written = [await newPost(writer)]
  for (const { client } of all) client.terminate()
  written.push(await newPost(writer), await newPost(writer))
  // Each look at the log takes fifty milliseconds now. On two connections 80 of them take longer than one may wait.
  await app.engine.read({ text: slowLog, values: [] })
  back.resolve()
  written.push(await newPost(writer), await newPost(writer))
  await waitUntil(() => all.every(({ ids, troubles }) => troubles.length > 0 || ids.length >= written.length))
  for (const { ids, troubles } of all) assert.deepEqual([troubles, ids], [[], written])
  await Promise.all(all.map(({ client }) => client.dispose()))
})

const slowLog = `create or replace function now_plus(seconds bigint) returns text language sql stable as $$
  select to_char(now() at time zone 'utc' + seconds * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
  from pg_sleep(0.05) $$`
