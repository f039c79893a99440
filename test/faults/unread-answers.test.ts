import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { unreadBounds } from '../../src/server/unread.ts'
import { inForm } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { serveDuet } from '../support/process.ts'
import { bodyOf, createMember } from '../support/rest.ts'
import { waitUntil } from '../support/wait.ts'

const answers = inForm(40, 400)
const megabytes = 1024 * 1024
const settings = { RATE_LIMIT_MAX: '0', LOG_LEVEL: 'warn' }

/** A server whose `{ posts(limit: 125) { content } }` is an answer of 8 MB. */
async function startWithPosts() {
  const duet = serveDuet(settings)
  const { url, port } = await duet.address()
  const { token } = await createMember({ url })
  const content = 'x'.repeat(65_000)
  const query = 'mutation ($c: String!) { createPost(title: "t", content: $c) { id } }'
  for (let count = 0; count < 125; count++) {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
    const body = JSON.stringify({ query, variables: { c: content } })
    bodyOf(await ask(`${url}/graphql`, { method: 'POST', headers, body }))
  }
  const metric = async (name: string) => {
    const { body } = await ask(`${url}/metrics`)
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(body)?.[1])
  }
  return { duet, url, port, metric }
}

/** Requests 8 MB, and reads only the first bytes of the answer. */
async function askInVain(port: number, localAddress: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  socket.on('error', () => {})
  const query = encodeURIComponent('{ posts(limit: 125) { content } }')
  socket.write(`GET /graphql?query=${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  await once(socket, 'readable')
  return socket
}

for (const [who, kept, addressOf] of [
  ['one client', unreadBounds.perClient, () => '127.0.0.1'],
  ['as many clients', unreadBounds.inAll, (index: number) => `127.0.${1 + (index >> 8)}.${index & 255}`],
] as const) {
  test(`${answers} unread answers of 8 MB to ${who} take bounded memory and are dropped in time`, async (t: TestContext) => {
    const { duet, url, port, metric } = await startWithPosts()
    await using _duet = duet
    using sockets = new DisposableStack()
    await ask(`${url}/graphql?query=${encodeURIComponent('{ posts(limit: 125) { content } }')}`)
    const before = await metric('process_resident_memory_bytes')
    const cutBefore = await metric('duet_connections_cut_total')
    let most = 0
    for (let index = 0; index < answers; index++) {
      sockets.adopt(await askInVain(port, addressOf(index)), open => open.destroy())
      if (index % 10 === 9) most = Math.max(most, await metric('process_resident_memory_bytes'))
    }
    const begun = performance.now()
    const cut = async () => (await metric('duet_connections_cut_total')) - cutBefore
    const withinBounds = Math.floor(kept / (125 * 65_000))
    assert.ok((await cut()) >= answers - withinBounds, `${await cut()} were cut`)
    // Answers within the limits are dropped after 30 seconds without progress.
    await waitUntil(async () => (await cut()) >= inForm(answers - withinBounds, answers))
    most = Math.max(most, await metric('process_resident_memory_bytes'))
    const seconds = (performance.now() - begun) / 1000
    const more = (most - before) / megabytes
    t.diagnostic(`${answers} unread answers: ${more.toFixed(0)} MB more, gone after ${seconds.toFixed(1)} s`)
    assert.ok(more <= 600, `${more} MB`)
    assert.ok(seconds <= 60, `${seconds} s`)
    assert.equal((await ask(`${url}/health/ready`)).status, 200)
  })
}
