import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from 'graphql-ws'
import { WebSocket } from 'ws'
import { startTestAppOn } from '../support/app.ts'
import { postgres } from '../support/engines.ts'
import { createMember } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'
import { newPost } from './posts.ts'

/** graphql-ws as it is: it sends its payload again on each connection, so it resumes if its last position is in there. */
function listen(url: string, retryWait: () => Promise<void>) {
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
  const all = Array.from({ length: 80 }, () => listen(app.url, () => back.promise))
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
