import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { shared } from '../support/shared.ts'
import { clientFrame, metricOf, opcodes, RawSocket, SocketClient } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'

const unlimited = { RATE_LIMIT_MAX: '0' }

/** JSON of this many nested arrays. */
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

/** A message with this total depth: the message, its payload, and arrays. */
const pingOf = (depth: number) => `{"type":"ping","payload":{"a":${nested(depth - 2)}}}`

/** The close code of a socket after these messages, or undefined if it stays open and answers. */
async function closedFor(app: { readonly url: string }, text: string): Promise<number | undefined> {
  using client = await SocketClient.open(app)
  client.sendText(text)
  client.send({ type: 'ping', payload: { afterwards: true } })
  const isAnswered = () => client.messages.some(({ payload }) => 'afterwards' in Object(payload))
  await waitUntil(() => client.isClosed || isAnswered())
  return client.isClosed ? (await client.closed).code : undefined
}

describe('A deeply nested message', () => {
  const app = shared(() => startTestApp(unlimited))

  it('is accepted up to 64 levels, and closes its socket above, for every type', async () => {
    using client = await SocketClient.connect(app)
    client.sendText(pingOf(64))
    await client.until(() => client.messages.some(({ type }) => type === 'pong'))
    const messages = [
      pingOf(65),
      pingOf(100_000),
      `{"type":"pong","payload":{"a":${nested(63)}}}`,
      `{"type":"connection_init","payload":{"a":${nested(63)}}}`,
      `{"type":"subscribe","id":"1","payload":{"query":"{ __typename }","variables":{"a":${nested(62)}}}}`,
      `{"type":"ping","ignored":${nested(64)}}`,
      `{"type":"ping","payload":{"a":${'{"b":'.repeat(63)}1${'}'.repeat(63)}}}`,
    ]
    for (const message of messages) assert.equal(await closedFor(app, message), 4400, message)
  })

  it('is distinguished from a message with brackets in its strings, with any escapes', async () => {
    using client = await SocketClient.connect(app)
    const brackets = '[{'.repeat(50)
    for (const text of [brackets, `\\"${brackets}`, `\\\\\\"${brackets}`, `${brackets}\\\\`, `"${brackets}"`]) {
      client.messages.length = 0
      client.send({ type: 'ping', payload: { text } })
      await client.until(() => client.messages.length > 0)
      assert.deepEqual(client.messages, [{ type: 'pong', payload: { text } }])
    }
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
    for (const payload of [payloadOf(1025, 'x'), payloadOf(1026, 'é'), payloadOf(200_000, 'x')]) {
      assert.equal(await closedFor(app, JSON.stringify({ type: 'ping', payload })), 4400)
    }
  })
})

describe('Messages at a high rate', () => {
  /** An app whose clock only the test moves. */
  const start = async (perSecond: string) => {
    const clock = new TestClock()
    const app = await startTestApp(
      { ...unlimited, SOCKET_MESSAGES_PER_SECOND: perSecond, SOCKETS_PER_CLIENT: '1000' },
      { clock },
    )
    return { app, clock, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() }
  }
  const pongs = (socket: RawSocket) => socket.frames.filter(({ payload }) => payload.includes('"pong"')).length
  /** Sends one more message. The code with which that closes the socket, or undefined if it is answered. */
  const closedAfter = async (socket: RawSocket, type: string) => {
    const heard = () => socket.frames.filter(({ opcode }) => opcode === opcodes.text || opcode === opcodes.close).length
    const known = heard()
    socket.say({ type })
    await waitUntil(() => heard() > known)
    return socket.closeCode
  }

  it('close their socket with 1008 above 50 per second over ten seconds, and other sockets stay open', async () => {
    await using stage = await start('')
    using socket = await RawSocket.connect(stage.app.port) // its connection_init is the first message
    using bystander = await SocketClient.connect(stage.app)
    for (let n = 1; n < 500; n++) socket.say({ type: 'ping' })
    await waitUntil(() => pongs(socket) === 499 || socket.closeCode !== undefined)
    assert.deepEqual([pongs(socket), socket.closeCode], [499, undefined])
    assert.equal(await closedAfter(socket, 'ping'), 1008)
    assert.deepEqual(await bystander.read('{ __typename }'), { __typename: 'Query' })
  })

  it('of all sockets of a client together are limited to those of a fiftieth of SOCKETS_PER_CLIENT', async () => {
    await using stage = await start('1')
    await using sockets = new AsyncDisposableStack()
    const open = async () => sockets.use(await RawSocket.connect(stage.app.port)) // its connection_init counts
    const senders = await Promise.all(Array.from({ length: 40 }, open))
    for (const socket of senders) for (let n = 1; n <= 4; n++) socket.say({ type: 'ping' })
    await waitUntil(() => senders.every(socket => pongs(socket) === 4))
    const [first = assert.fail(), second = assert.fail()] = senders
    assert.equal(await closedAfter(first, 'ping'), 1008)
    first[Symbol.dispose]()
    await waitUntil(async () => (await metricOf(stage.app, 'duet_sockets')) === 39)
    const later = sockets.use(await RawSocket.open(stage.app.port))
    assert.equal(await closedAfter(later, 'connection_init'), 1008, 'a closed socket makes no room for messages')
    stage.clock.pass(10_000)
    assert.equal(await closedAfter(second, 'ping'), undefined)
  })

  const frames = {
    'messages of every type': () => clientFrame('{"type":"pong"}'),
    pings: () => clientFrame('x', { opcode: opcodes.ping }),
    pongs: () => clientFrame('x', { opcode: opcodes.pong }),
  }
  for (const [what, frame] of Object.entries(frames)) {
    it(`are counted in windows of ten seconds: ${what}`, async () => {
      await using stage = await start('2')
      using socket = await RawSocket.connect(stage.app.port)
      const send = (count: number) => {
        for (let n = 0; n < count; n++) socket.write(frame())
        return closedAfter(socket, 'ping') // this one counts too: its answer comes after the earlier ones were processed
      }
      assert.equal(await send(18), undefined)
      stage.clock.pass(9_999)
      using other = await RawSocket.connect(stage.app.port) // a socket with its own window
      stage.clock.pass(1)
      assert.equal(await send(19), undefined)
      stage.clock.pass(9_999)
      assert.equal(await send(0), 1008)
      assert.equal(other.closeCode, undefined)
    })
  }

  it('are not counted if the setting is 0', async () => {
    await using stage = await start('0')
    using socket = await RawSocket.connect(stage.app.port)
    for (let n = 0; n < 1_000; n++) socket.say({ type: 'ping' })
    await waitUntil(() => pongs(socket) === 1_000 || socket.closeCode !== undefined)
    assert.equal(socket.closeCode, undefined)
  })
})
