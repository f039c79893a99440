import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Unsent } from '../../src/graphql/unsent.ts'
import { RawSocket } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'
import { FanOutStage } from './fakes.ts'
import { StuckStream, serveSockets } from './served-sockets.ts'

const mebibyte = 1024 * 1024
const query = { type: 'subscribe', id: '1', payload: { query: '{ post(id: 1) { id } }' } }

/** A stage on which every query is answered with so many bytes. */
function stageOf(bytes: number): FanOutStage {
  const stage = new FanOutStage()
  stage.store.answer = () => `{"post":{"id":"${'x'.repeat(bytes)}"}}`
  return stage
}

/** A socket of somebody who reads nothing, and has asked for something. */
async function stuckSocket(server: { accept(stream: StuckStream): void }, bytes: number): Promise<StuckStream> {
  const stream = new StuckStream()
  server.accept(stream)
  stream.hear({ type: 'connection_init' })
  await turn()
  stream.hear(query)
  await waitUntil(() => stream.writableLength > bytes)
  return stream
}

describe('Who does not read an answer', () => {
  it('is cut off when nothing of it was read for 30 seconds, and not before, however many pongs it sends', async () => {
    let closings = 0
    await using server = await serveSockets(stageOf(1_000), { observer: { closedForSlowness: () => closings++ } })
    const stream = await stuckSocket(server, 1_000)
    for (let beats = 0; beats < 3; beats++) {
      server.sockets.beat() // every ten seconds
      stream.hearPong()
      await turn()
      assert.ok(!stream.destroyed, `after ${beats} times ten seconds`)
    }
    server.sockets.beat()
    assert.ok(stream.destroyed)
    assert.equal(closings, 1)
    await waitUntil(() => server.sockets.size === 0)
  })

  it('is not cut off while it reads some of it, and is when it stops', async () => {
    await using server = await serveSockets(stageOf(1_000))
    const stream = await stuckSocket(server, 1_000)
    for (let n = 0; n < 30; n++) stream.hear({ type: 'ping' })
    await waitUntil(() => stream.writableLength > 1_500)
    for (let beats = 0; beats < 10; beats++) {
      server.sockets.beat()
      const before = stream.writableLength
      while (stream.writableLength === before) {
        stream.letThrough()
        await turn()
      }
      assert.ok(stream.writableLength > 0 && !stream.destroyed)
    }
    for (let beats = 0; beats < 4; beats++) server.sockets.beat()
    assert.ok(stream.destroyed)
  })

  it('may take minutes for one large answer: what counts is what leaves, not whole messages', async () => {
    await using server = await serveSockets(stageOf(48 * mebibyte))
    using socket = await RawSocket.connect(server.port)
    const [stream] = server.streams
    /** What the runtime has still to send of the one message. */
    const left = (): number => Reflect.get(stream ?? {}, '_handle')?.writeQueueSize
    socket.stream.removeAllListeners('data').pause()
    socket.say(query)
    await waitUntil(() => left() > 0)
    for (let beats = 0; beats < 6; beats++) {
      server.sockets.beat()
      assert.ok(server.sockets.size === 1 && !socket.isEnded, `after ${beats} times ten seconds`)
      const before = left()
      await waitUntil(() => {
        socket.stream.read(65_536)
        return left() < before || socket.isEnded
      })
    }
    for (let beats = 0; beats < 5; beats++) server.sockets.beat()
    assert.ok(stream?.destroyed)
  })

  it('has at most 64 MiB waiting over all its sockets: then those that waited longest are cut off, and no others', async () => {
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

describe('Unsent', () => {
  class FakeConnection {
    unsent = 0
    isCut = false

    cut(): void {
      this.isCut = true
    }
  }

  it('looks at what waits now, not at what waited once', () => {
    const unsent = new Unsent(100)
    const connections = Array.from({ length: 10 }, () => new FakeConnection())
    for (const connection of connections) {
      connection.unsent = 60
      unsent.note(connection)
      connection.unsent = 0 // all of it was sent meanwhile
    }
    assert.ok(connections.every(({ isCut }) => !isCut))
  })

  it('forgets who is gone', () => {
    const unsent = new Unsent(100)
    const [gone, stays] = [new FakeConnection(), new FakeConnection()]
    for (const connection of [gone, stays]) {
      connection.unsent = 60
      unsent.note(connection)
      if (connection === gone) unsent.forget(gone)
    }
    assert.deepEqual([gone.isCut, stays.isCut], [false, false])
  })

  it('cuts who began to wait first, until what is left is within the bound', () => {
    const unsent = new Unsent(100)
    const connections = Array.from({ length: 5 }, () => new FakeConnection())
    for (const connection of connections) {
      connection.unsent = 20
      unsent.note(connection)
    }
    const [first, , , , last] = connections
    if (first === undefined || last === undefined) return assert.fail()
    first.unsent = 10 // it still began first
    unsent.note(first)
    last.unsent = 55
    unsent.note(last)
    assert.deepEqual(
      connections.map(({ isCut }) => isCut),
      [true, true, false, false, false],
    )
  })
})
