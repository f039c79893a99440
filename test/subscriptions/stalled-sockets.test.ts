import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Unsent } from '../../src/server/unsent.ts'
import { startTestApp } from '../support/app.ts'
import { dataOf, query } from '../support/graphql.ts'
import { createMember } from '../support/rest.ts'
import { clientFrame, metricOf, opcodes, RawSocket } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'
import { FanOutStage } from './fakes.ts'
import { StuckStream, serveSockets } from './served-sockets.ts'

const mebibyte = 1024 * 1024
const subscribe = { type: 'subscribe', id: '1', payload: { query: '{ post(id: 1) { id } }' } }

/** A stage on which the answer to every query has this many bytes. */
function stageOf(bytes: number): FanOutStage {
  const stage = new FanOutStage()
  stage.store.answer = () => `{"post":{"id":"${'x'.repeat(bytes)}"}}`
  return stage
}

/** A socket of a client that has sent a request and reads nothing. */
async function stuckSocket(server: { accept(stream: StuckStream): void }, bytes: number): Promise<StuckStream> {
  const stream = new StuckStream()
  server.accept(stream)
  stream.hear({ type: 'connection_init' })
  await turn()
  stream.hear(subscribe)
  await waitUntil(() => stream.writableLength > bytes)
  return stream
}

describe('A client that does not read an answer', () => {
  it('is disconnected after 30 seconds without reading, and not before, however many pongs it sends', async () => {
    let time = 0
    let sweeps = 0
    const now = () => {
      sweeps++
      return time
    }
    const world = { unread: { now, bounds: { sweepMs: 1 } } }
    await using app = await startTestApp({ RATE_LIMIT_MAX: '0', SOCKET_MESSAGES_PER_SECOND: '0' }, world)
    const { token } = await createMember(app)
    const text = 'mutation ($c: String!) { createPost(title: "Long", content: $c) { id } }'
    for (let n = 0; n < 8; n++) dataOf(await query(app, text, { variables: { c: 'x'.repeat(65_000) }, token }))
    using socket = await RawSocket.connect(app.port)
    socket.pause()
    // 7.5 MiB: more than the buffers between the two ends hold.
    const contents = Array.from({ length: 15 }, (_, n) => `c${n}: content`).join(' ')
    socket.say({ type: 'subscribe', id: '1', payload: { query: `{ posts(limit: 8) { ${contents} } }` } })
    const swept = async () => {
      const before = sweeps
      await waitUntil(() => sweeps >= before + 2)
    }
    await waitUntil(async () => (await metricOf(app, 'duet_unsent_bytes')) > mebibyte)
    await swept()
    time += 29_999
    socket.write(clientFrame('', { opcode: opcodes.pong }))
    await swept()
    assert.equal(await metricOf(app, 'duet_sockets'), 1)
    time += 1
    await waitUntil(async () => (await metricOf(app, 'duet_sockets')) === 0)
    assert.equal(await metricOf(app, 'duet_connections_cut_total'), 1)
    assert.equal(await metricOf(app, 'duet_unsent_bytes'), 0)
  })

  it('has at most 64 MiB unsent data over all its sockets: above that the sockets whose data waited longest are closed', async () => {
    let closings = 0
    let client = 'another'
    const observer = { closedForSlowness: () => closings++ }
    await using server = await serveSockets(stageOf(8 * mebibyte), { observer, clientOf: () => client })
    const other = await stuckSocket(server, 8 * mebibyte)
    client = 'greedy'
    const own: StuckStream[] = []
    const areCut = () => own.map(({ destroyed }) => destroyed)
    for (let n = 0; n < 7; n++) own.push(await stuckSocket(server, 8 * mebibyte))
    assert.deepEqual(areCut(), Array(7).fill(false))
    own.push(await stuckSocket(server, 8 * mebibyte))
    assert.deepEqual(areCut(), [true, ...Array(7).fill(false)])
    own.push(await stuckSocket(server, 8 * mebibyte))
    assert.deepEqual(areCut(), [true, true, ...Array(7).fill(false)])
    assert.deepEqual([other.destroyed, closings], [false, 2])
    for (const stream of [other, ...own]) stream.destroy()
  })
})

describe('Unsent bytes', () => {
  class FakeConnection {
    readonly client: string
    bytes: number
    isCut = false

    constructor(client: string, bytes: number) {
      this.client = client
      this.bytes = bytes
    }

    cut(): void {
      this.isCut = true
    }
  }

  const wereCut = (connections: readonly FakeConnection[]) => connections.map(({ isCut }) => isCut)

  it('are the bytes that wait now, not those that waited before', () => {
    const unsent = new Unsent({ perClient: 100, inAll: 100 })
    const connections = Array.from({ length: 10 }, () => new FakeConnection('a', 60))
    for (const connection of connections) {
      unsent.note(connection)
      connection.bytes = 0 // everything was sent meanwhile
    }
    assert.ok(connections.every(({ isCut }) => !isCut))
  })

  it('do not include bytes of closed connections', () => {
    const unsent = new Unsent({ perClient: 100, inAll: 100 })
    const [gone, stays] = [new FakeConnection('a', 60), new FakeConnection('a', 60)]
    unsent.note(gone)
    unsent.forget(gone)
    unsent.note(stays)
    assert.deepEqual(wereCut([gone, stays]), [false, false])
    assert.equal(unsent.bytes, 60)
  })

  it('of one client are limited: the connections whose data waited longest are closed, and none of another client', () => {
    const unsent = new Unsent({ perClient: 100, inAll: 1_000 })
    const other = new FakeConnection('other', 90)
    unsent.note(other)
    const connections = Array.from({ length: 5 }, () => new FakeConnection('a', 20))
    for (const connection of connections) unsent.note(connection)
    const [first, , , , last] = connections
    if (first === undefined || last === undefined) return assert.fail()
    first.bytes = 10 // its data still waits longest
    unsent.note(first)
    last.bytes = 55
    unsent.note(last)
    assert.deepEqual(wereCut(connections), [true, true, false, false, false])
    assert.equal(other.isCut, false)
  })

  it('of all clients together are limited: the connections whose data waited longest are closed, of any client', () => {
    const unsent = new Unsent({ perClient: 100, inAll: 150 })
    const connections = ['a', 'b', 'c', 'd'].map(client => new FakeConnection(client, 60))
    for (const connection of connections) unsent.note(connection)
    assert.deepEqual(wereCut(connections), [true, true, false, false])
    assert.equal(unsent.bytes, 120)
  })

  it('of all clients together are dropped for the client with the most, not for the client that began first', () => {
    const unsent = new Unsent({ perClient: 100, inAll: 150 })
    const readers = ['a', 'b'].map(client => new FakeConnection(client, 20))
    const greedy = [new FakeConnection('greedy', 50), new FakeConnection('greedy', 50)]
    for (const connection of [...readers, ...greedy]) unsent.note(connection)
    const late = new FakeConnection('late', 30)
    unsent.note(late)
    assert.deepEqual(wereCut([...readers, ...greedy, late]), [false, false, true, false, false])
  })
})
