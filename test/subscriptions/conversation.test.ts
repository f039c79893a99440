import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { CloseCode } from 'graphql-ws'
import { unavailable } from '../../src/core/errors.ts'
import type { AuthenticatedUser } from '../../src/core/tokens/operations.ts'
import { socketBounds } from '../../src/graphql/live/messages.ts'
import type { ConversationParts } from '../../src/graphql/live/protocol.ts'
import { Socket } from '../../src/graphql/live/socket.ts'
import { stalled, Unread } from '../../src/http/unread.ts'
import { TestClock } from '../support/clock.ts'
import { clientFrame, opcodes, RawSocket, SocketClient } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'
import { commentAdded, FanOutStage, postAdded, postDeleted, soon } from './fakes.ts'
import { authenticated, converse, FakeWire, StuckStream, serveSockets } from './served-sockets.ts'

// An uncaught error or an unhandled rejection fails these tests automatically.

async function acknowledged(parts?: Partial<ConversationParts>, wire?: FakeWire, payload?: object) {
  const conversing = converse(parts, wire)
  conversing.say({ type: 'connection_init', payload })
  await turn()
  assert.deepEqual(conversing.wire.sent.splice(0), [{ type: 'connection_ack' }])
  return conversing
}

/** With a token that may be revoked. */
const loggedIn = (isStillValid: ConversationParts['isStillValid']) =>
  acknowledged({ authenticate: async () => authenticated(1), isStillValid }, undefined, { Authorization: 'Bearer x' })

const post = '{ post(id: 1) { id } }'
const posts = 'subscription { postAdded { id } }'
const comments = 'subscription ($post: ID!) { commentAdded(postId: $post) { id } }'

function nextMessage(id: string, postId: number) {
  return { id, type: 'next', payload: { data: { postAdded: { id: String(postId) } } } }
}

describe('Conversation', () => {
  it('of many clients that log in and subscribe at once, a few are looked at at a time, and those with a revoked token are closed', async () => {
    const { fanOut } = new FanOutStage()
    let [running, most, revoked] = [0, 0, '']
    const slowly = async <Value>(value: Value) => {
      most = Math.max(most, ++running)
      await turn()
      running--
      return value
    }
    const { actor, ...more } = authenticated(1)
    const authenticate = (tokenVersion: string) => slowly({ ...more, actor: { ...actor, tokenVersion } })
    const isStillValid = ({ tokenVersion }: typeof actor) => slowly(tokenVersion !== revoked)
    const talks = Array.from({ length: 50 }, () => converse({ fanOut, authenticate, isStillValid }))
    const closed = () => talks.filter(({ wire }) => wire.closed?.[0] === 4403).length
    for (const [at, { say }] of talks.entries())
      say({ type: 'connection_init', payload: { authorization: `${at % 2}` } })
    await soon(() => talks.every(({ wire }) => wire.sent.length === 1))
    revoked = '1'
    for (const { begin } of talks) begin('1', posts)
    await soon(() => fanOut.groups.members + closed() === talks.length)
    for (const talk of talks) talk[Symbol.dispose]()
    assert.deepEqual([most, closed(), fanOut.groups.members], [4, 25, 0])
  })

  it('leaves turns to others while it ends many operations', async () => {
    const { begin, conversation, stage } = await acknowledged({ observer: { ended: () => void Buffer.alloc(4e6, 1) } })
    for (let n = 0; n < 50; n++) begin(`${n}`, posts)
    await soon(() => stage.fanOut.groups.members === 50)
    conversation.closed()
    assert.ok(stage.fanOut.groups.members > 0)
    await waitUntil(() => stage.fanOut.groups.members === 0)
  })

  it('the end of a completed operation does not end another operation with the same id, and one that is completed before it has begun leaves nothing', async () => {
    using talk = await acknowledged()
    const { promise, resolve } = Promise.withResolvers<void>()
    talk.stage.log.held = promise
    talk.begin('1', comments, { post: '7' })
    await turn()
    talk.say({ type: 'complete', id: '1' })
    talk.begin('1', posts)
    await turn()
    await talk.stage.happen(commentAdded(7, 1), postDeleted(7))
    talk.begin('2', posts)
    talk.say({ type: 'complete', id: '2' })
    resolve()
    await turn()
    assert.deepEqual(talk.wire.sent, [])
    await talk.stage.happen(postAdded(6))
    assert.deepEqual(talk.wire.sent, [nextMessage('1', 6)])
    talk.conversation.closed()
    assert.deepEqual([talk.stage.fanOut.groups.size, talk.stage.fanOut.groups.members], [0, 0])
  })

  it('a store that does not answer at first closes no socket and refuses no subscription', async () => {
    let failures = 2
    const mayFail = () => {
      if (failures-- > 0) throw unavailable(new Error('away'))
    }
    const authenticate = async () => {
      mayFail()
      return authenticated(1)
    }
    using talk = converse({ authenticate })
    talk.stage.store.hasPost = async () => {
      mayFail()
      return true
    }
    talk.say({ type: 'connection_init', payload: { Authorization: 'Bearer x' } })
    await soon(() => talk.wire.sent.length === 1)
    failures = 2
    talk.begin('1', comments, { post: '7' })
    await soon(() => failures < 0)
    await turn()
    await talk.stage.happen(commentAdded(7, 1))
    assert.partialDeepStrictEqual(talk.wire.sent, [{ type: 'connection_ack' }, { type: 'next' }])
    assert.deepEqual(talk.stage.reported, [])
  })

  it('while the store is unavailable a socket with a token, or that asks for the position, is closed with 1013', async () => {
    for (const payload of [{ Authorization: 'Bearer x' }, { positions: true }]) {
      using talk = converse({ authenticate: () => Promise.reject(unavailable(new Error('away'))) })
      talk.stage.log.isAway = true
      talk.say({ type: 'connection_init', payload })
      await soon(() => talk.wire.closed !== undefined)
      assert.deepEqual([talk.wire.closed?.[0], talk.wire.sent], [1013, []])
      assert.equal(talk.stage.reported.map(({ code }) => code).join(), 'unavailable')
    }
  })

  it('the token of connection_init takes precedence over the token of the request, whichever is checked or expires first', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const clock = new TestClock()
    const authentications = new Map(
      ['Bearer header', 'Bearer init'].map(key => [key, Promise.withResolvers<AuthenticatedUser>()]),
    )
    const authenticate = (key: string) => authentications.get(key)?.promise ?? assert.fail(key)
    using talk = converse({ authenticate, clock }, undefined, 'Bearer header')
    talk.say({ type: 'connection_init', payload: { Authorization: 'Bearer init' } })
    authentications.get('Bearer init')?.resolve(authenticated(2, clock.now() / 1000 + 90))
    await turn()
    authentications.get('Bearer header')?.resolve(authenticated(1, clock.now() / 1000 + 30))
    await turn()
    assert.deepEqual(talk.wire.sent, [{ type: 'connection_ack' }])
    assert.deepEqual(talk.conversation.login.actor, authenticated(2).actor)
    clock.pass(60_000)
    t.mock.timers.tick(60_000)
    assert.equal(talk.wire.closed, undefined)
  })

  it('a socket with a token of 60 days stays open for 60 days, although timers are limited to 24 days', async t => {
    const days = 24 * 60 * 60 * 1000
    const clock = new TestClock()
    const expiry = clock.now() + 60 * days
    const timers = t.mock.method(globalThis, 'setTimeout')
    using talk = converse({ clock, authenticate: async () => authenticated(1, expiry / 1000) })
    talk.say({ type: 'connection_init', payload: { Authorization: 'Bearer x' } })
    await turn()
    assert.deepEqual(talk.wire.sent, [{ type: 'connection_ack' }])
    // Runs each long timer directly, so that 60 days pass at once. Other code of this process starts shorter timers.
    for (let seen = 0; talk.wire.closed === undefined; seen++) {
      const long = timers.mock.calls.map(call => call.arguments).filter(([, ms = 0]) => ms > days)
      const [look, ms = 0] = long[seen] ?? assert.fail(`no timer after ${seen}`)
      assert.ok(ms < 2 ** 31, `a timer of ${ms} ms: beyond 2^31 - 1 it would fire after 1 ms`)
      assert.ok(clock.now() < expiry, 'the token has expired, and the socket is open')
      clock.pass(ms)
      look()
    }
    assert.deepEqual(talk.wire.closed, [4403, 'Token expired'])
    assert.equal(clock.now(), expiry)
  })

  it('an internal error is reported with its cause, the client gets no details, and the socket stays open', async () => {
    using talk = await acknowledged()
    talk.stage.store.answer = () => {
      throw new Error('a secret')
    }
    talk.begin('1', post)
    await turn()
    const error = { message: 'Internal server error', extensions: { code: 'INTERNAL_SERVER_ERROR' } }
    assert.deepEqual(talk.wire.sent, [{ id: '1', type: 'error', payload: [error] }])
    const reported = talk.stage.reported.map(({ code, cause }) => `${code}: ${(cause as Error).message}`)
    assert.deepEqual(reported, ['fault: a secret'])
    talk.begin('1', posts)
    await turn()
    assert.equal(talk.wire.closed, undefined)
  })

  it('4409 for an id that is in use, with a reason that fits into a close frame, for any id', async () => {
    for (const id of ['twice', 'x'.repeat(256), '€'.repeat(80), '🎈'.repeat(128), `${'x'.repeat(84)}🎈`]) {
      using talk = await acknowledged()
      talk.begin(id, posts)
      talk.begin(id, posts)
      const [code, reason = ''] = talk.wire.closed ?? []
      assert.equal(code, CloseCode.SubscriberAlreadyExists)
      if (id === 'twice') assert.equal(reason, 'Subscriber for twice already exists')
      assert.ok(Buffer.byteLength(reason) <= 123, `${Buffer.byteLength(reason)} bytes`)
    }
  })

  it('the number of running operations of a socket is limited, including cancelled ones', async () => {
    using talk = await acknowledged()
    const { promise, resolve } = Promise.withResolvers<void>()
    talk.stage.store.answer = async () => {
      await promise
      return '{"post":null}'
    }
    for (let n = 0; n < 300; n++) {
      talk.begin(`${n}`, post)
      talk.say({ type: 'complete', id: `${n}` })
    }
    await turn()
    assert.ok(talk.stage.store.reads.length <= socketBounds.operations, `${talk.stage.store.reads.length} at once`)
    resolve()
    await turn()
    assert.doesNotMatch(JSON.stringify(talk.wire.sent), /"next"/)
  })
})

/** A connection that throws when it sends the chosen message. */
function brokenWire(at: string): FakeWire {
  const wire = new FakeWire()
  const send = wire.send.bind(wire)
  wire.send = message => {
    if (JSON.parse(message).type === at) throw new Error(`no ${at}`)
    send(message)
  }
  return wire
}

describe('An internal error in the work for a socket', () => {
  it('closes it with 1011 and is reported: sending any message', async () => {
    for (const at of ['connection_ack', 'pong', 'complete', 'error']) {
      const wire = brokenWire(at)
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
    const wire = brokenWire('next')
    using talk = await acknowledged({}, wire)
    talk.begin('1', posts)
    await turn()
    const { received } = await talk.stage.subscribe(posts)
    await talk.stage.happen(postAdded(1), postAdded(2))
    assert.deepEqual(wire.closed, [1011, 'Internal server error'])
    assert.deepEqual([talk.stage.fanOut.groups.members, talk.stage.reported.length], [1, 1])
    assert.deepEqual(received, [{ postAdded: { id: '1' } }, { postAdded: { id: '2' } }])
  })

  it('closes it with 1011, and no other: a message, a ping, a pong', async () => {
    const controls = [opcodes.ping, opcodes.pong].map(opcode => clientFrame('x', { opcode }))
    for (const frame of [clientFrame('{"type":"ping"}'), ...controls]) {
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
  for (const [what, query] of Object.entries({ query: post, subscription: posts })) {
    it(`is closed with 4403 at the next ${what}, and gets no data`, async () => {
      let isValid = true
      using talk = await loggedIn(async () => isValid)
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

  it('would get, if it was not, what happens while that is checked', async () => {
    let check = Promise.resolve(true)
    using talk = await loggedIn(() => check)
    check = turn(true).then(async isValid => (await talk.stage.happen(postAdded(1))) && isValid)
    talk.begin('1', posts)
    await check
    await turn()
    assert.deepEqual(talk.wire.sent, [nextMessage('1', 1)])
  })

  it('stays open while the store is unavailable, and its operation fails', async () => {
    let isAway = false
    using talk = await loggedIn(async () => {
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

describe('Sockets', () => {
  it('a client that reads late is waited for each time', async () => {
    const stream = new StuckStream({ highWaterMark: 1 })
    const websocket = Object.assign(new EventEmitter(), { resume() {} })
    const socket = new Socket(websocket as never, stream as never, new Unread(), { closedForSlowness() {} })
    for (let round = 0; round < 2; round++) {
      stream.write('x')
      let isRead = false
      socket.ready()?.then(() => (isRead = true))
      await turn()
      assert.ok(!isRead)
      await stream.drain()
      assert.ok(isRead)
    }
  })

  for (const what of ['token is revoked', 'key is removed']) {
    it(`a socket whose ${what} during authentication is closed`, async () => {
      const { promise, resolve } = Promise.withResolvers<AuthenticatedUser>()
      let isValid = true
      await using server = await serveSockets(new FanOutStage(), {
        authenticate: () => promise,
        isStillValid: async () => isValid || what === 'key is removed',
        isKnownKey: () => isValid || what === 'token is revoked',
      })
      using client = await SocketClient.open(server)
      client.send({ type: 'connection_init', payload: { Authorization: 'Bearer x' } })
      client.send({ type: 'ping' })
      await client.until(() => client.messages.some(({ type }) => type === 'pong'))
      // The token was still valid when it was checked. That changes before the result arrives.
      isValid = false
      if (what === 'token is revoked') await server.sockets.revoke(1)
      else server.sockets.revokeKeys()
      resolve(authenticated(1))
      assert.equal((await client.closed).code, 4403)
    })
  }

  /** Sockets over connections whose clients read nothing until they are drained. */
  const serveStuck = async (unread = new Unread()) => {
    const stage = new FanOutStage()
    let closings = 0
    const server = await serveSockets(stage, { unread, observer: { closedForSlowness: () => closings++, ended() {} } })
    const streams: StuckStream[] = []
    return {
      stage,
      server,
      closings: () => closings,
      open: async () => {
        const stream = new StuckStream()
        streams.push(stream)
        server.accept(stream)
        stream.hear({ type: 'connection_init' })
        await turn()
        return stream
      },
      [Symbol.asyncDispose]: async () => {
        for (const stream of streams) stream.destroy()
        await server[Symbol.asyncDispose]()
      },
    }
  }

  it('a socket is cut and counted when its connection is found to be stalled', async () => {
    await using stuck = await serveStuck()
    const stream = await stuck.open()
    assert.equal(stream.emit(stalled), true)
    assert.deepEqual([stream.destroyed, stuck.closings()], [true, 1])
  })

  const question = { type: 'subscribe', id: '1', payload: { query: post } }

  /** One that subscribes. */
  const subscribeWithoutReading = async () => {
    const { stage, open, closings, [Symbol.asyncDispose]: end } = await serveStuck()
    const stream = await open()
    stream.hear({ type: 'subscribe', id: '1', payload: { query: posts } })
    await waitUntil(() => stage.fanOut.groups.members === 1)
    const sendEvent = (bytes: number) => {
      stage.store.answer = () => JSON.stringify({ postAdded: { id: 'x'.repeat(bytes) } })
      return stage.happen(postAdded(1))
    }
    return {
      stream,
      sendEvent,
      answer: async (bytes: number) => {
        stage.store.answer = () => `{"post":{"id":"${'x'.repeat(bytes)}"}}`
        stream.hear({ ...question, id: '2' })
        await waitUntil(() => stream.writableLength > bytes)
      },
      /** Sends events until the socket is closed. Returns the number of waiting bytes. */
      waitingWhenClosed: async (): Promise<number> => {
        while (closings() === 0) {
          assert.equal(stage.fanOut.groups.members, 1)
          assert.ok(stream.writableLength < 100 * mebibyte, 'the number of waiting bytes has no limit')
          await sendEvent(bytes)
        }
        assert.deepEqual([closings(), stage.fanOut.groups.members], [1, 0])
        return stream.writableLength
      },
      isClosed: () => closings() > 0,
      [Symbol.asyncDispose]: end,
    }
  }

  /** Of an event: many of them are less than 1 MiB. */
  const bytes = 40_000

  it('a socket whose client does not read is closed when more than 1 MiB waits, and not before, whatever it has read, and behind a larger message', async () => {
    for (const [largeOnes, isRead] of [
      [0, true],
      [2, true],
      [1, false],
    ] as const) {
      await using stuck = await subscribeWithoutReading()
      const large = 5 * mebibyte
      for (let round = 0; round < largeOnes; round++) {
        await stuck.answer(large)
        for (let n = 0; n < 10; n++) await stuck.sendEvent(bytes)
        if (isRead) await stuck.stream.drain()
      }
      assert.ok(!stuck.isClosed())
      const waiting = (await stuck.waitingWhenClosed()) - (isRead ? 0 : large)
      assert.ok(waiting > mebibyte && waiting < mebibyte + 2 * bytes, `${waiting} bytes wait after ${largeOnes}`)
    }
  })

  it('a client that does not read an answer is disconnected while all together leave too much unread, and one that reads is not', async () => {
    const unread = new Unread(3 * mebibyte)
    await using stuck = await serveStuck(unread)
    stuck.stage.store.answer = () => `{"post":{"id":"${'x'.repeat(mebibyte)}"}}`
    const reading = await stuck.open()
    await reading.drain()
    const destroyed: boolean[] = []
    for (let n = 0; n < 3; n++) {
      const stream = await stuck.open()
      stream.hear(question)
      await waitUntil(() => stream.writableLength > mebibyte || stream.destroyed)
      destroyed.push(stream.destroyed)
    }
    assert.deepEqual([destroyed, stuck.closings(), reading.destroyed], [[false, false, true], 1, false])
    for (let times = 0; times < 2; times++) stuck.server.sockets.beat() // who has more to read cannot answer a ping yet
    await turn()
    assert.ok(unread.bytes > 2 * mebibyte && unread.bytes < 3 * mebibyte, `${unread.bytes} bytes`)
    await stuck[Symbol.asyncDispose]()
    await waitUntil(() => unread.bytes === 0)
  })

  it('a client is served again each time that it has read an answer of more than 1 MiB, whatever its characters', async () => {
    await using stuck = await serveStuck()
    stuck.stage.store.answer = () => `{"post":{"id":"${'€'.repeat(mebibyte / 2)}"}}`
    const stream = await stuck.open()
    for (let times = 0; times < 2; times++) {
      stream.hear(question)
      await waitUntil(() => stream.writableLength > 1.5 * mebibyte)
      assert.ok(stream.isPaused(), 'who does not read is not read')
      await stream.drain()
      assert.deepEqual([stuck.closings(), stream.isPaused()], [0, false])
    }
  })
})

const mebibyte = 1024 * 1024
