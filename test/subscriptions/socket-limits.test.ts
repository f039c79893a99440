import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import { connectTo } from '../storage/transaction.ts'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { postgres, sqlite } from '../support/engines.ts'
import type { RawResponse } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import { createMember } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import {
  clientFrame,
  metricOf,
  opcodes,
  RawSocket,
  SocketClient,
  subprotocol,
  upgradeLines,
} from '../support/sockets.ts'
import { impatient, waitUntil } from '../support/wait.ts'
import { idsIn, newPost } from './posts.ts'

const unlimited = { RATE_LIMIT_MAX: '0' }

function assertTooMany(response: RawResponse): void {
  assertRefusal(response, 429, 'Too many open sockets. Try again later.')
  assert.match(response.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
}

describe('Sockets of one client', () => {
  const app = shared(() => startTestApp({ ...unlimited, SOCKETS_PER_CLIENT: '2', TRUST_PROXY: '127.0.0.1' }))
  const linesOf = (address: string) => upgradeLines({ 'X-Forwarded-For': address })

  /** Checks that so many more sockets are accepted. The service may notice late that a socket is closed. */
  const assertRoom = async (address: string, count: number) => {
    using sockets = new DisposableStack()
    let accepted = 0
    for (let tries = 0; accepted < count && tries < 500; tries++)
      if (sockets.use(await RawSocket.open(app.port, linesOf(address))).handshake.status === 101) accepted++
    assert.equal(accepted, count)
  }

  it('are limited: one more is refused with 429, and a closed one makes room, by IPv4 address or IPv6 network', async () => {
    const [address, others] = ['2001:db8:1:2::1', ['2001:db8:1:3::1', '192.0.2.7']]
    using first = await RawSocket.open(app.port, linesOf(address))
    using second = await RawSocket.open(app.port, linesOf(address))
    assert.deepEqual([first.handshake.status, second.handshake.status], [101, 101])
    for (const same of [address, '2001:db8:1:2:ffff::2']) {
      using refused = await RawSocket.open(app.port, linesOf(same))
      assertTooMany(refused.handshake)
      await waitUntil(() => refused.isEnded)
    }
    for (const other of others) await assertRoom(other, 2)
    first.stream.end()
    await assertRoom(address, 1)
  })

  it('count until their connection ends, for every reason of closing', async () => {
    const address = '192.0.2.8'
    const open = (protocol: string) =>
      RawSocket.open(app.port, [...upgradeLines({ 'Sec-WebSocket-Protocol': protocol }), `X-Forwarded-For: ${address}`])
    // These clients get the close frame, but do not disconnect.
    using foreign = await open('other')
    using flawed = await open(subprotocol)
    flawed.say({ type: 'nonsense' })
    await waitUntil(() => foreign.closeCode === 4406 && flawed.closeCode === 4400)
    using refused = await open(subprotocol)
    assertTooMany(refused.handshake)
    foreign.stream.end()
    flawed.stream.end()
    await assertRoom(address, 2)
  })
})

describe('Messages at a high rate', () => {
  /** An app whose clock only the test moves. */
  const start = async (perSecond: string, perClient = '1000') => {
    const clock = new TestClock()
    const settings = { ...unlimited, SOCKET_MESSAGES_PER_SECOND: perSecond, SOCKETS_PER_CLIENT: perClient }
    return Object.assign(await startTestApp(settings, { clock }), { clock })
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
    await using app = await start('')
    using socket = await RawSocket.connect(app.port) // its connection_init is the first message
    using bystander = await SocketClient.connect(app)
    for (let n = 1; n < 500; n++) socket.say({ type: 'ping' })
    await waitUntil(() => pongs(socket) === 499 || socket.closeCode !== undefined)
    assert.deepEqual([pongs(socket), socket.closeCode], [499, undefined])
    assert.equal(await closedAfter(socket, 'ping'), 1008)
    assert.deepEqual(await bystander.read('{ __typename }'), { __typename: 'Query' })
  })

  it('of all sockets of a client together are limited to those of a fiftieth of SOCKETS_PER_CLIENT, and never to fewer than those of one', async () => {
    for (const [most, count] of Object.entries({ 1000: 40, 20: 2 })) {
      await using app = await start('1', most)
      await using sockets = new AsyncDisposableStack()
      const open = async () => sockets.use(await RawSocket.connect(app.port)) // its connection_init counts
      const senders = await Promise.all(Array.from({ length: count }, open))
      for (const socket of senders) for (let n = 1; n <= 4; n++) socket.say({ type: 'ping' })
      await waitUntil(() => senders.every(socket => pongs(socket) === 4))
      const [first = assert.fail(), second = assert.fail()] = senders
      assert.equal(await closedAfter(first, 'ping'), 1008)
      first[Symbol.dispose]()
      await waitUntil(async () => (await metricOf(app, 'duet_sockets')) === count - 1)
      const later = sockets.use(await RawSocket.open(app.port))
      assert.equal(await closedAfter(later, 'connection_init'), 1008, 'a closed socket makes no room for messages')
      app.clock.pass(10_000)
      assert.equal(await closedAfter(second, 'ping'), undefined)
    }
  })

  const frames = {
    'messages of every type': clientFrame('{"type":"pong"}'),
    pings: clientFrame('x', { opcode: opcodes.ping }),
    pongs: clientFrame('x', { opcode: opcodes.pong }),
  }
  it('are counted in windows of ten seconds, frames of pings and pongs too', async () => {
    await using app = await start('2')
    for (const [what, frame] of Object.entries(frames)) {
      using socket = await RawSocket.connect(app.port)
      const send = (count: number, by = socket) => {
        for (let n = 0; n < count; n++) by.write(frame)
        return closedAfter(by, 'ping') // this one counts too: its answer comes after the earlier ones were processed
      }
      assert.equal(await send(18), undefined, what)
      app.clock.pass(9_999)
      using other = await RawSocket.connect(app.port) // a socket with its own window
      app.clock.pass(1)
      assert.equal(await send(19), undefined, what)
      app.clock.pass(9_999)
      assert.equal(await send(0), 1008, what)
      assert.equal(await send(19, other), undefined, what)
      app.clock.pass(-60_000)
      assert.equal(await send(0, other), undefined, `${what}, after the clock was set back`)
    }
  })

  it('count by their size: large ones are closed with 1008 long before as many small ones', async () => {
    await using app = await start('')
    const padding = 'x'.repeat(200_000)
    using large = await RawSocket.connect(app.port)
    for (let n = 0; n < 40; n++) large.say({ type: 'pong', payload: { padding } })
    large.say({ type: 'ping' })
    await waitUntil(() => pongs(large) > 0 || large.closeCode !== undefined)
    assert.equal(large.closeCode, 1008)
    using small = await RawSocket.connect(app.port)
    for (let n = 0; n < 40; n++) small.say({ type: 'ping' })
    await waitUntil(() => small.frames.filter(({ payload }) => payload.includes('pong')).length === 40)
  })
})

const ids = 'subscription { postAdded { id } }'
const different = (n: number) => `subscription { postAdded { a${n}: id } }`

test('a subscription that cannot be read in time, on PostgreSQL, is ended with SUBSCRIPTION_TOO_EXPENSIVE, and others get every event once and in order', {
  skip: postgres.skip,
}, async () => {
  await using app = await startTestAppOn(postgres, { ...unlimited, ...impatient })
  using writer = await SocketClient.connect(app, await createMember(app))
  using reader = await SocketClient.connect(app)
  const write = (text: string) => newPost(writer, text)
  const withComments = 'subscription { postAdded { id comments { id } } }'
  const other = await reader.begin(ids).listening(write)
  const expensive = await reader.begin(withComments).listening(write)
  const mark = await newPost(writer, 'from here on')
  for (const each of [other, expensive]) {
    await each.until(() => idsIn(each).includes(mark))
    each.events.length = 0
  }
  {
    await using database = await connectTo(app.database.location)
    await database.query(`alter table comments rename to quick_comments; create view comments as
      select quick_comments.* from pg_sleep(3600) left join quick_comments on true offset 0`)
    const written: string[] = []
    const deadline = performance.now() + 30_000 // two reads of a second each are expected
    const isLate = () => performance.now() > deadline
    const writeAndReceive = async () => {
      written.push(await newPost(writer, 'T'))
      await other.until(() => other.events.length >= written.length || isLate())
      assert.deepEqual(idsIn(other), written)
    }
    let age = 0
    while (!expensive.isOver && !isLate()) {
      await writeAndReceive()
      age = Math.max(age, await metricOf(app, 'duet_events_undelivered_age_seconds'))
    }
    await writeAndReceive()
    assert.ok(age > 0.5, `the oldest event that was not delivered yet was ${age} seconds old`)
    assert.deepEqual([expensive.events, expensive.errors?.[0]?.extensions.code], [[], 'SUBSCRIPTION_TOO_EXPENSIVE'])
    await database.query('drop view comments; alter table quick_comments rename to comments')
  }
  // The client may subscribe again.
  await reader.begin(withComments).listening(write)
  await waitUntil(async () => (await metricOf(app, 'duet_events_undelivered_age_seconds')) === 0)
})

test('different subscriptions of one client are limited over all its sockets with SUBSCRIPTION_LIMIT_EXCEEDED, and other clients are not affected', async () => {
  const groups = { SUBSCRIPTION_GROUPS_PER_CLIENT: '3', SUBSCRIPTION_GROUPS: '5' }
  await using app = await startTestAppOn(sqlite, { ...unlimited, ...groups })
  const counted = (count: number) => waitUntil(async () => (await metricOf(app, 'duet_subscriptions')) === count)
  using one = await SocketClient.connect(app)
  using two = await SocketClient.connect(app)
  const first = one.begin(different(0))
  one.begin(different(1))
  two.begin(different(2))
  two.begin(different(0))
  await counted(4)
  const { errors } = await two.ask(different(3))
  const message = 'At most 3 different subscriptions of one client at a time.'
  assert.deepEqual(errors, [{ message, extensions: { code: 'SUBSCRIPTION_LIMIT_EXCEEDED' } }])
  using other = await SocketClient.connect(app, { localAddress: '127.0.0.2' })
  other.begin(different(3))
  other.begin(different(4))
  await counted(6)
  assert.equal((await other.ask(different(5))).errors?.[0]?.extensions.code, 'SUBSCRIPTION_LIMIT_EXCEEDED')
  other.begin(different(1))
  await counted(7)
  first.complete()
  await two.close()
  await counted(4)
  one.begin(different(6))
  await counted(5)
})
