import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { RawConnection } from '../support/http.ts'

const request = (head = '') => `GET /users HTTP/1.1\r\nHost: localhost\r\n${head}\r\n`

/** Connections that stay open until the test ends. */
function connections(port: number) {
  const stack = new DisposableStack()
  const open = async (localAddress?: string) => stack.use(await RawConnection.open(port, localAddress))
  /** The first bytes of an answer on a new connection; empty if the connection is closed instead. */
  const answer = async (text: string, localAddress?: string): Promise<string> => {
    const connection = await open(localAddress)
    connection.write(text)
    await connection.until(() => connection.unread !== '')
    return connection.unread
  }
  const answered = async (localAddress?: string, head?: string) => (await answer(request(head), localAddress)) !== ''
  return { open, answer, answered, [Symbol.dispose]: () => stack.dispose() }
}

test('a connection beyond CONNECTIONS_PER_CLIENT is closed at once, other clients have their own limit, and a closed connection makes room', async () => {
  await using app = await startTestApp({ CONNECTIONS_PER_CLIENT: '3' })
  using clients = connections(app.port)
  const first = await clients.open()
  assert.ok(await clients.answered())
  assert.ok(await clients.answered())
  assert.equal(await clients.answered(), false)
  assert.equal(await clients.answered(), false)
  assert.ok(await clients.answered('127.0.0.2'))
  first[Symbol.dispose]()
  // The service notices the close a moment later.
  let makesRoom = false
  for (let tries = 0; tries < 1_000 && !makesRoom; tries++) makesRoom = await clients.answered()
  assert.ok(makesRoom)
  using other = await RawConnection.open(app.port, '127.0.0.3')
  other.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n')
  assert.match((await other.response()).body, /^duet_connections_refused_total [1-9]/m)
})

test('a WebSocket request that is refused still counts as a connection, and an open WebSocket does not', async () => {
  await using app = await startTestApp({ CONNECTIONS_PER_CLIENT: '1' })
  using clients = connections(app.port)
  const upgrade = (version: string) =>
    `GET /graphql HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: ${version}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n`
  // The connection stays open until the client closes it, too, at most for a second.
  assert.match(await clients.answer(upgrade('12')), /^HTTP\/1.1 400 /)
  assert.equal(await clients.answered(), false)
  assert.match(await clients.answer(upgrade('13'), '127.0.0.2'), /^HTTP\/1.1 101 /)
  assert.ok(await clients.answered('127.0.0.2'))
})

test('connections of a trusted proxy are not counted', async () => {
  await using app = await startTestApp({ CONNECTIONS_PER_CLIENT: '1', TRUST_PROXY: '127.0.0.1' })
  using clients = connections(app.port)
  for (let count = 0; count < 5; count++) assert.ok(await clients.answered('127.0.0.1'))
  assert.ok(await clients.answered('127.0.0.2'))
  assert.equal(await clients.answered('127.0.0.2', 'X-Forwarded-For: 192.0.2.1\r\n'), false)
})

test('CONNECTIONS_PER_CLIENT=0 allows any number', async () => {
  await using app = await startTestApp({ CONNECTIONS_PER_CLIENT: '0' })
  using clients = connections(app.port)
  for (let count = 0; count < 50; count++) assert.ok(await clients.answered())
})
