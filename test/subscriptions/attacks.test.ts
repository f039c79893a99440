import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { startTestApp } from '../support/app.ts'
import { createMember } from '../support/rest.ts'
import { clientFrame, opcodes, RawSocket, SocketClient, untilNoSocketIsLeft } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'

const posts = 'subscription { postAdded { id } }'

describe('Sockets under attack', () => {
  let app: Awaited<ReturnType<typeof startTestApp>>
  let token: string
  const warnings: Error[] = []
  const note = (warning: Error) => warnings.push(warning)
  before(async () => {
    process.on('warning', note) // Node warns about accumulating listeners
    app = await startTestApp({ RATE_LIMIT_MAX: '0' })
    token = (await createMember(app)).token
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    process.off('warning', note)
  })
  // After each attack the other clients are served, and nothing of the attack is left. Uncaught errors and unhandled
  // rejections fail the test automatically.
  afterEach(async () => {
    await untilNoSocketIsLeft(app)
    using client = await SocketClient.connect(app, { token })
    assert.deepEqual(await client.read('{ __typename }'), { __typename: 'Query' })
    await client.close()
    assert.deepEqual(warnings, [])
    assert.deepEqual(
      app.logs.filter(({ level }) => Number(level) >= 50),
      [],
    )
  })

  it('messages after the close of a socket, by either side, are not processed', async () => {
    using socket = await RawSocket.connect(app.port)
    socket.write(clientFrame(Buffer.from([0x03, 0xe8]), { opcode: opcodes.close }))
    socket.say({ type: 'subscribe', id: '1', payload: { query: posts } })
    await waitUntil(() => socket.closeCode === 1000)
    using refused = await RawSocket.connect(app.port)
    refused.say({ type: 'nonsense' })
    for (let n = 0; n < 10; n++) refused.say({ type: 'subscribe', id: `${n}`, payload: { query: posts } })
    await waitUntil(() => refused.closeCode === 4400)
    assert.ok(!refused.frames.some(({ payload }) => payload.includes('"next"')))
  })

  it('names of built-in JavaScript properties work as ids and variables', async () => {
    using client = await SocketClient.connect(app)
    const query = 'query ($id: ID!) { post(id: $id) { id } }'
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      const text = `{"type":"subscribe","id":"${name}","payload":{"query":"${query}","variables":{"id":"0","${name}":{"x":1}},"${name}":{"polluted":1}}}`
      client.sendText(text)
      await client.until(() => client.messages.some(({ id, type }) => id === name && type === 'complete'))
    }
    assert.equal(Object(Object.prototype).polluted, undefined)
  })

  it('many subscriptions that are completed at once cause no error', async () => {
    using client = await SocketClient.connect(app)
    for (let n = 0; n < 500; n++) {
      const id = `${n % 7}`
      client.send({ type: 'subscribe', id, payload: { query: posts } })
      client.send({ type: 'complete', id })
      if (n % 50 === 0) await turn()
    }
    await waitUntil(async () => (await client.ask('{ post(id: 0) { id } }')).errors === undefined)
    client.websocket.close()
  })

  it('operations whose socket closes, in every state, cause no error', async () => {
    const create = 'mutation { createPost(title: "T", content: "C") { id } }'
    const clients = await Promise.all(Array.from({ length: 40 }, () => SocketClient.connect(app, { token })))
    for (const [index, client] of clients.entries()) {
      for (const text of [posts, '{ posts { id author { name } } }', create, posts]) client.begin(text)
      if (index % 3 === 0) client.websocket.close()
      if (index % 3 === 1) client.websocket.terminate()
      if (index % 3 === 2) turn().then(() => client.websocket.terminate())
    }
    await Promise.all(clients.map(({ closed }) => closed))
  })

  it('sockets that close during authentication cause no error', async () => {
    const open = async (index: number) => {
      const client = await SocketClient.open(
        app,
        index % 2 === 0 ? {} : { headers: { authorization: `Bearer ${token}` } },
      )
      client.send({ type: 'connection_init', payload: index % 2 === 0 ? { Authorization: `Bearer ${token}` } : {} })
      if (index % 4 > 1) await turn()
      client.websocket.terminate()
      await client.closed
    }
    await Promise.all(Array.from({ length: 60 }, (_, index) => open(index)))
  })
})
