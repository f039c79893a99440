import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { unavailable } from '../../src/core/errors.ts'
import type { ConversationParts } from '../../src/graphql/live/protocol.ts'
import { clientFrame, opcodes, RawSocket, SocketClient } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'
import { FanOutStage, postAdded } from './fakes.ts'
import { authenticated, converse, FakeWire, serveSockets } from './served-sockets.ts'

// An uncaught error or an unhandled rejection fails these tests automatically.

const posts = 'subscription { postAdded { id } }'
const post = '{ post(id: 1) { id } }'

/** A connection that throws when it sends the chosen message. */
class BrokenWire extends FakeWire {
  #at: string

  constructor(at: string) {
    super()
    this.#at = at
  }

  override send(message: string): void {
    if (JSON.parse(message).type === this.#at) throw new Error(`no ${this.#at}`)
    super.send(message)
  }
}

describe('An internal error in the work for a socket', () => {
  it('closes it with 1011 and is reported: sending any message', async () => {
    for (const at of ['connection_ack', 'pong', 'complete', 'error']) {
      const wire = new BrokenWire(at)
      using talk = converse({}, wire)
      talk.say({ type: 'connection_init' })
      await turn()
      talk.say({ type: 'ping' })
      talk.begin('1', at === 'error' ? '{ nothing }' : post)
      await turn()
      assert.deepEqual(wire.closed, [1011, 'Internal server error'], at)
      const reported = talk.stage.reported.map(({ code, cause }) => `${code}: ${(cause as Error).message}`)
      assert.deepEqual(reported, [`fault: no ${at}`])
    }
  })

  it('closes it with 1011, and no other, and is reported: sending an event', async () => {
    const wire = new BrokenWire('next')
    using talk = converse({}, wire)
    talk.say({ type: 'connection_init' })
    await turn()
    talk.begin('1', posts)
    await turn()
    const { received } = await talk.stage.subscribe(posts)
    await talk.stage.happen(postAdded(1), postAdded(2))
    assert.deepEqual(wire.closed, [1011, 'Internal server error'])
    assert.deepEqual([talk.stage.fanOut.groups.members, talk.stage.reported.length], [1, 1])
    assert.deepEqual(received, [{ postAdded: { id: '1' } }, { postAdded: { id: '2' } }])
  })

  it('closes it with 1011, and no other: a message, a ping, a pong', async () => {
    const frames = [
      clientFrame('{"type":"ping"}'),
      clientFrame('x', { opcode: opcodes.ping }),
      clientFrame('x', { opcode: opcodes.pong }),
    ]
    for (const frame of frames) {
      const stage = new FanOutStage()
      let isBroken = false
      const now = () => (isBroken ? assert.fail('no time') : Date.now())
      await using server = await serveSockets(stage, { clock: { now }, messagesPerSecond: 1000 })
      using bystander = await SocketClient.connect(server)
      using socket = await RawSocket.connect(server.port)
      isBroken = true
      socket.write(frame)
      await waitUntil(() => socket.closeCode !== undefined)
      isBroken = false
      assert.equal(socket.closeCode, 1011)
      assert.deepEqual(await bystander.read('{ __typename }'), { __typename: 'Query' })
      assert.equal(stage.reported.map(({ code }) => code).join(), 'fault')
    }
  })

  it('during its opening destroys it', async () => {
    const stage = new FanOutStage()
    await using server = await serveSockets(stage, { clientOf: () => assert.fail('nobody') })
    using _socket = await RawSocket.open(server.port)
    assert.equal(server.streams[0]?.destroyed, true)
    assert.deepEqual([server.sockets.size, stage.reported.map(({ code }) => code)], [0, ['fault']])
  })
})

describe('A socket whose token was revoked', () => {
  const connect = async (isStillValid: ConversationParts['isStillValid']) => {
    const talk = converse({ authenticate: async () => authenticated(1), isStillValid })
    talk.say({ type: 'connection_init', payload: { Authorization: 'Bearer x' } })
    await turn()
    assert.deepEqual(talk.wire.sent.splice(0), [{ type: 'connection_ack' }])
    return talk
  }

  for (const [what, query] of Object.entries({ query: post, subscription: posts })) {
    it(`is closed with 4403 at the next ${what}, and gets no data`, async () => {
      let isValid = true
      using talk = await connect(async () => isValid)
      talk.begin('1', '{ post(id: 2) { id } }')
      await turn()
      assert.deepEqual([talk.wire.sent.splice(0).length, talk.wire.closed], [2, undefined])
      isValid = false
      talk.begin('1', query)
      await turn()
      assert.deepEqual([talk.wire.sent, talk.wire.closed], [[], [4403, 'Forbidden']])
      assert.equal(talk.stage.fanOut.groups.members, 0)
    })
  }

  it('stays open while the store is unavailable, and its operation fails', async () => {
    let isAway = false
    using talk = await connect(async () => {
      if (isAway) throw unavailable(new Error('away'))
      return true
    })
    isAway = true
    talk.begin('1', post)
    await turn()
    const [message] = talk.wire.sent as { type: string }[]
    assert.deepEqual([message?.type, talk.wire.closed, talk.stage.store.reads], ['error', undefined, []])
  })

  it('is closed if the check fails with an internal error, and checked again if the store is unavailable', async () => {
    const stage = new FanOutStage()
    let failure: Error | undefined
    const isStillValid = async () => {
      if (failure !== undefined) throw failure
      return true
    }
    await using server = await serveSockets(stage, { authenticate: async () => authenticated(1), isStillValid })
    using client = await SocketClient.connect(server, { token: 'x' })
    failure = unavailable(new Error('away'))
    await assert.rejects(server.sockets.revoke(1), { code: 'unavailable' })
    assert.ok(!client.isClosed)
    failure = new Error('a defect')
    await server.sockets.revoke(1)
    assert.equal((await client.closed).code, 4403)
    assert.equal(stage.reported.map(({ code }) => code).join(), 'fault')
  })
})
