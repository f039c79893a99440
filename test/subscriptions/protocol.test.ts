import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it, mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { CloseCode } from 'graphql-ws'
import { startTestApp } from '../support/app.ts'
import { createMember } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import {
  clientFrame,
  metricOf,
  opcodes,
  RawSocket,
  SocketClient,
  subprotocol,
  untilNoSocketIsLeft,
  upgradeLines,
} from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'
import { newPost as createPost } from './posts.ts'

const posts = 'subscription { postAdded { id } }'

/** JSON of this many nested arrays. */
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

/** A message with this total depth: the message, its payload, and arrays. */
const pingOf = (depth: number) => `{"type":"ping","payload":{"a":${nested(depth - 2)}}}`

describe('graphql-transport-ws', () => {
  const app = shared(() => startTestApp({ RATE_LIMIT_MAX: '0' }))
  let token: string
  before(async () => (token = (await createMember(app)).token))

  const newPost = async (text: string): Promise<string> => {
    using client = await SocketClient.connect(app, { token })
    return await createPost(client, text)
  }

  /** The close code of an acknowledged socket after it sent these messages: 4429 if none of them is refused. */
  const closedFor = async (...said: readonly (string | Buffer | object)[]): Promise<number> => {
    using client = await SocketClient.connect(app)
    for (const each of [...said, { type: 'connection_init' }])
      client.sendText(typeof each === 'string' || Buffer.isBuffer(each) ? each : JSON.stringify(each))
    return (await client.closed).code
  }

  const subscribe = (id: unknown, payload: unknown = { query: posts }) => ({ type: 'subscribe', id, payload })

  it('R-SUB-3: acknowledges a socket and uses graphql-transport-ws on it', async () => {
    using client = await SocketClient.open(app)
    assert.equal(client.websocket.protocol, subprotocol)
    assert.equal(client.websocket.extensions, '')
    await client.initialise()
    assert.deepEqual(client.messages, [{ type: 'connection_ack' }])
    for (const payload of [null, {}, { anything: [1] }, { authorization: null }]) {
      using other = await SocketClient.open(app)
      await other.initialise(payload)
    }
  })

  it('answers a query with next and complete, and an error with error alone', async () => {
    using client = await SocketClient.connect(app)
    const good = client.begin('query Q($id: ID!) { found: post(id: $id) { id } }', { id: '0' }, { id: 'good' })
    await good.over()
    const bad = client.begin('{ nothing }', undefined, { id: 'bad' })
    await bad.over()
    const [, next, complete, error, ...more] = client.messages
    assert.deepEqual(next, { id: 'good', type: 'next', payload: { data: { found: null } } })
    assert.deepEqual(complete, { id: 'good', type: 'complete' })
    assert.deepEqual({ ...error, payload: [] }, { id: 'bad', type: 'error', payload: [] })
    assert.deepEqual(more, [])
  })

  it('returns ids unchanged, with any characters', async () => {
    using client = await SocketClient.connect(app)
    const odd = ['"', '\\"', '","type":"error","x":"', '\u0000\u001f\n', '\u2028', 'é€🎈', '\ud800', '{}', ' ']
    const ids = [...odd, '__proto__', 'constructor', 'x'.repeat(256), '€'.repeat(256)]
    const all = ids.map(id => client.begin(posts, undefined, { id }))
    for (const each of all) await each.listening(newPost)
    for (const id of ids) {
      const failing = client.begin('{ nothing }', undefined, { id: `${id.slice(0, 250)}q` })
      await failing.over()
      assert.ok(failing.errors, id)
    }
  })

  it('answers ping with pong, also before the acknowledgement, ping frames with pong frames, and accepts pong', async () => {
    using socket = await RawSocket.open(app.port)
    socket.write(clientFrame('are you there', { opcode: opcodes.ping }))
    await waitUntil(() => socket.frames.length === 1)
    assert.deepEqual([socket.frames[0]?.opcode, String(socket.frames[0]?.payload)], [opcodes.pong, 'are you there'])
    using client = await SocketClient.open(app)
    client.send({ type: 'ping' })
    await client.initialise()
    client.send({ type: 'pong' })
    client.send({ type: 'pong', payload: { any: 1 } })
    client.send({ type: 'ping', payload: { at: 'noon' } })
    await client.until(() => client.messages.length === 3)
    assert.deepEqual(client.messages, [
      { type: 'pong' },
      { type: 'connection_ack' },
      { type: 'pong', payload: { at: 'noon' } },
    ])
  })

  const unknownTypes = [
    ...[undefined, null, 1, {}, '', 'Ping', 'start', 'stop', 'connection_terminate', 'connection_ack'],
    ...['next', 'error', '__proto__', 'constructor', 'toString'],
  ]
  const optional = [{ variables: [] }, { variables: 'x' }, { operationName: 1 }, { extensions: 'x' }]
  const payloads = [
    ...[null, 'x', 1, [], [{ query: posts }], {}, { query: 1 }, { query: null }, { query: [posts] }],
    ...optional.map(each => ({ query: posts, ...each })),
  ]
  const invalid: Readonly<Record<string, readonly (string | Buffer | object)[]>> = {
    'that are no JSON object': [
      ...['', ' ', '{', 'null', '1', '"x"', '[]', '{}', '[{"type":"ping"}]', '['.repeat(100_000), '\u0000'],
    ],
    'that are binary': [Buffer.from('{"type":"ping"}'), Buffer.from([0, 1, 2])],
    'of unknown types, including those of the older protocol and of the server': unknownTypes.map(type => ({
      ...{ type, id: '1', payload: { query: posts } },
    })),
    'with invalid ids': [
      ...[undefined, null, 1, '', {}, ['1'], true, 'x'.repeat(257)].map(id => subscribe(id)),
      ...[undefined, null, 1, {}, ['1']].map(id => ({ type: 'complete', id })),
    ],
    'without an operation': [{ type: 'subscribe', id: '1' }, ...payloads.map(payload => subscribe('1', payload))],
    'ping and pong whose payload is not an object': ['x', 1, [], true].flatMap(payload =>
      ['ping', 'pong'].map(type => ({ type, payload })),
    ),
  }
  for (const [what, messages] of Object.entries(invalid)) {
    it(`4400 for messages ${what}`, async () => {
      for (const message of messages)
        assert.equal(await closedFor(message), CloseCode.BadRequest, JSON.stringify(message).slice(0, 100))
    })
  }

  it('4400, 4401 and 4429 for a connection_init that is no object, an operation before its acknowledgement, and a second one', async () => {
    const init = { type: 'connection_init', payload: { Authorization: `Bearer ${token}` } }
    const cases: readonly (readonly [code: number, ...said: object[]])[] = [
      ...['x', 1, true, [], ['Bearer']].map(payload => [4400, { ...init, payload }] as const),
      [CloseCode.Unauthorized, subscribe('1')],
      [CloseCode.Unauthorized, init, subscribe('1')],
      [CloseCode.TooManyInitialisationRequests, init, { type: 'connection_init' }],
    ]
    for (const [code, ...said] of cases) {
      using client = await SocketClient.open(app)
      for (const message of said) client.send(message)
      assert.equal((await client.closed).code, code, JSON.stringify(said))
    }
    assert.equal(await closedFor(), CloseCode.TooManyInitialisationRequests)
    await untilNoSocketIsLeft(app)
  })

  it('4406 without a subprotocol, or with only other ones, and ours is found among others', async () => {
    for (const protocols of [undefined, 'mqtt, graphql-ws', 'GRAPHQL-TRANSPORT-WS']) {
      using socket = await RawSocket.open(app.port, upgradeLines({ 'Sec-WebSocket-Protocol': protocols }))
      assert.equal(socket.handshake.status, 101)
      assert.equal(socket.handshake.headers.get('sec-websocket-protocol'), undefined)
      socket.say({ type: 'connection_init' })
      await waitUntil(() => socket.closeCode !== undefined)
      assert.deepEqual([socket.closeCode, socket.frames.length], [CloseCode.SubprotocolNotAcceptable, 1], protocols)
    }
    using client = await SocketClient.connect(app, { protocols: ['graphql-ws', subprotocol] })
    assert.equal(client.websocket.protocol, subprotocol)
  })

  it('1009 for a message of more than 256 KiB, and 256 KiB are accepted', async () => {
    const filled = (size: number) => JSON.stringify({ type: 'ping' }).padEnd(size, ' ')
    using client = await SocketClient.connect(app)
    client.sendText(filled(256 * 1024))
    await client.until(() => client.messages.some(({ type }) => type === 'pong'))
    client.sendText(filled(256 * 1024 + 1))
    assert.equal((await client.closed).code, 1009)
  })

  it('a nested message is accepted up to 64 levels, and closes its socket above, for every type', async () => {
    using client = await SocketClient.connect(app)
    client.sendText(pingOf(64))
    await client.until(() => client.messages.some(({ type }) => type === 'pong'))
    const messages = [
      pingOf(65),
      pingOf(100_000),
      `{"type":"pong","payload":{"a":${nested(63)}}}`,
      `{"type":"connection_init","payload":{"a":${nested(63)}}}`, // refused before it counts as a second one
      `{"type":"subscribe","id":"1","payload":{"query":"{ __typename }","variables":{"a":${nested(62)}}}}`,
      `{"type":"ping","ignored":${nested(64)}}`,
      `{"type":"ping","payload":{"a":${'{"b":'.repeat(63)}1${'}'.repeat(63)}}}`,
    ]
    for (const message of messages) assert.equal(await closedFor(message), 4400, message)
  })

  it('a ping is answered with its payload up to 1 KiB of JSON, and closes its socket with 4400 above', async () => {
    const payloadOf = (bytes: number, character: string) => {
      const room = bytes - Buffer.byteLength('{"a":""}')
      return { a: character.repeat(room / Buffer.byteLength(character)) }
    }
    using client = await SocketClient.connect(app)
    for (const character of ['x', 'é', '€']) {
      const payload = payloadOf(1024, character)
      client.messages.length = 0
      client.send({ type: 'ping', payload })
      await client.until(() => client.messages.length > 0)
      assert.deepEqual(client.messages, [{ type: 'pong', payload }])
    }
    for (const payload of [payloadOf(1025, 'x'), payloadOf(1026, 'é'), payloadOf(200_000, 'x')])
      assert.equal(await closedFor({ type: 'ping', payload }), 4400)
  })

  it('messages of more than 500 values are refused with 4400 before they are parsed', async () => {
    const payload = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 0]))
    using client = await SocketClient.connect(app)
    client.send({ type: 'pong', payload: payload(490) })
    assert.deepEqual(await client.read('{ __typename }'), { __typename: 'Query' })
    assert.equal(await closedFor({ type: 'pong', payload: payload(510) }), CloseCode.BadRequest)
  })

  it('messages in more than 64 fragments are refused with 1008', async () => {
    using socket = await RawSocket.connect(app.port)
    socket.write(clientFrame('{', { opcode: opcodes.text, isFinal: false }))
    for (let n = 0; n < 64; n++) socket.write(clientFrame(' ', { opcode: opcodes.continuation, isFinal: false }))
    await waitUntil(() => socket.closeCode === 1008)
  })

  it('of 101 subscriptions 100 are accepted, the last gets SUBSCRIPTION_LIMIT_EXCEEDED, and one that ends makes room', async () => {
    using client = await SocketClient.connect(app)
    const all = Array.from({ length: 100 }, () => client.begin(posts))
    for (const text of [posts, '{ __typename }'])
      assert.equal((await client.ask(text)).errors?.[0]?.extensions.code, 'SUBSCRIPTION_LIMIT_EXCEEDED')
    all[0]?.complete()
    const id = await newPost('for 99')
    const more = await client.begin(posts).listening(newPost)
    const last = await newPost('for 100')
    for (const operation of [...all.slice(1), more])
      await operation.until(events => JSON.stringify(events.at(-1)) === JSON.stringify({ postAdded: { id: last } }))
    assert.deepEqual(all[0]?.events, [])
    assert.deepEqual(all[1]?.events[0], { postAdded: { id } })
    await client.close()
    await untilNoSocketIsLeft(app)
  })

  it('a ping is sent every 20 s, and a client that does not answer with its payload is disconnected at the next one', async () => {
    mock.timers.enable({ apis: ['setInterval'] })
    try {
      await using own = await startTestApp({ RATE_LIMIT_MAX: '0' })
      using alive = await SocketClient.connect(own)
      using dead = await RawSocket.connect(own.port)
      dead.say({ type: 'subscribe', id: '1', payload: { query: posts } })
      await waitUntil(async () => (await metricOf(own, 'duet_subscriptions')) === 1)
      const pingsIn = () => dead.frames.filter(({ opcode }) => opcode === opcodes.ping)
      const pings = () => pingsIn().length
      mock.timers.tick(19_999)
      await alive.read('{ __typename }')
      assert.deepEqual([alive.pings, pings()], [0, 0])
      mock.timers.tick(1)
      await waitUntil(() => alive.pings === 1 && pings() === 1)
      const first = pingsIn()[0] ?? assert.fail()
      dead.write(clientFrame(first.payload, { opcode: opcodes.pong }))
      dead.say({ type: 'ping' })
      await waitUntil(() => dead.frames.some(({ payload }) => payload.includes('pong')))
      await alive.read('{ __typename }')
      mock.timers.tick(20_000)
      await waitUntil(() => alive.pings === 2 && pings() === 2)
      // Pongs that do not answer the latest ping: empty, with the bytes of an earlier ping, or with other bytes.
      for (const payload of ['', first.payload, Buffer.alloc(8)])
        dead.write(clientFrame(payload, { opcode: opcodes.pong }))
      dead.say({ type: 'ping' })
      await waitUntil(() => dead.frames.filter(({ payload }) => payload.includes('pong')).length === 2)
      await alive.read('{ __typename }') // its pong was read before this answer
      mock.timers.tick(20_000)
      await waitUntil(() => alive.pings === 3)
      await waitUntil(() => dead.isEnded || pings() === 3)
      assert.ok(dead.isEnded)
      await waitUntil(async () => (await metricOf(own, 'duet_subscriptions')) === 0)
      assert.equal(await metricOf(own, 'duet_sockets'), 1)
      // An open socket is not a request: the only one is that for the metrics.
      await waitUntil(async () => (await metricOf(own, 'duet_http_requests_in_flight')) === 1)
      assert.ok(!alive.isClosed)
    } finally {
      mock.timers.reset()
    }
  })

  describe('under attack', () => {
    const warnings: Error[] = []
    const note = (warning: Error) => warnings.push(warning)
    before(() => void process.on('warning', note)) // Node warns about accumulating listeners
    after(() => void process.off('warning', note))
    // After each attack the other clients are served, and nothing of the attack is left. Uncaught errors and unhandled
    // rejections fail the test automatically.
    afterEach(async () => {
      await untilNoSocketIsLeft(app)
      using client = await SocketClient.connect(app, { token })
      assert.deepEqual(await client.read('{ __typename }'), { __typename: 'Query' })
      await client.close()
      assert.deepEqual(warnings, [])
      const faults = app.logs.filter(({ level }) => Number(level) >= 50)
      assert.deepEqual(faults, [])
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

    it('sockets that close, in every way, during authentication and operations of every kind, cause no error', async () => {
      const authorization = `Bearer ${token}`
      const create = 'mutation { createPost(title: "T", content: "C") { id } }'
      const ways: readonly ((client: SocketClient) => unknown)[] = [
        ({ websocket }) => websocket.close(4321, 'bye'),
        ({ websocket }) => websocket.terminate(),
        ({ websocket }) => turn().then(() => websocket.terminate()),
        ({ websocket }) => (websocket as unknown as { _socket: { end(): void } })._socket.end(),
      ]
      const clients = Array.from({ length: 80 }, async (_, index) => {
        const isInMessage = index % 8 < 4
        const client = await SocketClient.open(app, isInMessage ? {} : { headers: { authorization } })
        const payload = isInMessage ? { authorization } : {}
        if (index < 40) client.send({ type: 'connection_init', payload })
        else {
          await client.initialise(payload)
          await client.begin(posts).listening(newPost)
          for (const text of ['{ posts { id author { name } } }', create, posts]) client.begin(text)
        }
        ways[index % 4]?.(client)
        await client.closed
      })
      await Promise.all(clients)
    })
  })
})
