import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startTestApp } from '../support/app.ts'
import type { RawResponse } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import { clientFrame, opcodes, RawSocket, SocketClient, upgradeLines } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'

const unlimited = { RATE_LIMIT_MAX: '0' }

function assertTooMany(response: RawResponse): void {
  assertRefusal(response, 429, 'Too many open sockets. Try again later.')
  assert.match(response.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
}

/** Checks that so many more sockets are accepted. The service may notice late that a socket is closed. */
async function assertRoom({ port }: { readonly port: number }, count: number): Promise<void> {
  using sockets = new DisposableStack()
  let accepted = 0
  for (let tries = 0; accepted < count && tries < 500; tries++)
    if (sockets.use(await RawSocket.open(port)).handshake.status === 101) accepted++
  assert.equal(accepted, count)
}

describe('Sockets of one client', () => {
  it('are limited: one more is refused with 429, and a closed one makes room', async () => {
    await using app = await startTestApp({ ...unlimited, SOCKETS_PER_CLIENT: '3' })
    const clients = await Promise.all(Array.from({ length: 3 }, () => SocketClient.connect(app)))
    for (let n = 0; n < 2; n++) {
      using refused = await RawSocket.open(app.port)
      assertTooMany(refused.handshake)
      await waitUntil(() => refused.isEnded)
    }
    using other = await SocketClient.connect(app, { localAddress: '127.0.0.2' })
    assert.deepEqual(await other.read('{ __typename }'), { __typename: 'Query' })
    await clients[0]?.close()
    await assertRoom(app, 1)
    for (const client of clients) client[Symbol.dispose]()
  })

  it('count until their connection ends, for every reason of closing', async () => {
    await using app = await startTestApp({ ...unlimited, SOCKETS_PER_CLIENT: '2' })
    // This client gets the close frame, but does not disconnect.
    using foreign = await RawSocket.open(app.port, upgradeLines({ 'Sec-WebSocket-Protocol': 'other' }))
    using flawed = await RawSocket.connect(app.port)
    flawed.say({ type: 'nonsense' })
    await waitUntil(() => foreign.closeCode === 4406 && flawed.closeCode === 4400)
    using refused = await RawSocket.open(app.port)
    assertTooMany(refused.handshake)
    foreign.stream.end()
    flawed.stream.end()
    await assertRoom(app, 2)
  })

  it('are counted by IPv4 address or IPv6 network, also behind a trusted proxy', async () => {
    await using app = await startTestApp({ ...unlimited, SOCKETS_PER_CLIENT: '1', TRUST_PROXY: '127.0.0.1' })
    const open = (address: string) => RawSocket.open(app.port, upgradeLines({ 'X-Forwarded-For': address }))
    using first = await open('2001:db8:1:2::1')
    assert.equal(first.handshake.status, 101)
    using same = await open('2001:db8:1:2:ffff::2')
    assertTooMany(same.handshake)
    using other = await open('2001:db8:1:3::1')
    assert.equal(other.handshake.status, 101)
    using another = await open('192.0.2.7')
    assert.equal(another.handshake.status, 101)
  })
})

describe('Messages of one socket', () => {
  it('count by their size: large ones are closed with 1008 long before as many small ones', async () => {
    await using app = await startTestApp({ ...unlimited, SOCKET_MESSAGES_PER_SECOND: '50' })
    const padding = 'x'.repeat(200_000)
    using large = await RawSocket.connect(app.port)
    for (let n = 0; n < 40; n++) large.say({ type: 'pong', payload: { padding } })
    await waitUntil(() => large.closeCode === 1008)
    using small = await RawSocket.connect(app.port)
    for (let n = 0; n < 40; n++) small.say({ type: 'ping' })
    await waitUntil(() => small.frames.filter(({ payload }) => payload.includes('pong')).length === 40)
  })

  it('of more than 5,000 values are refused with 4400 before they are parsed', async () => {
    await using app = await startTestApp(unlimited)
    const payload = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 0]))
    using passing = await RawSocket.connect(app.port)
    passing.say({ type: 'pong', payload: payload(4_900) })
    passing.say({ type: 'ping' })
    await waitUntil(() => passing.frames.some(({ payload }) => payload.includes('pong')))
    using refused = await RawSocket.connect(app.port)
    refused.say({ type: 'pong', payload: payload(5_100) })
    await waitUntil(() => refused.closeCode === 4400)
  })

  it('in more than 64 fragments are refused with 1008', async () => {
    await using app = await startTestApp(unlimited)
    using socket = await RawSocket.connect(app.port)
    socket.write(clientFrame('{', { opcode: opcodes.text, isFinal: false }))
    for (let n = 0; n < 64; n++) socket.write(clientFrame(' ', { opcode: opcodes.continuation, isFinal: false }))
    await waitUntil(() => socket.closeCode === 1008)
  })
})
