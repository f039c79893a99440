import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { RawConnection } from '../support/http.ts'
import { within } from '../support/wait.ts'

const request = (head = '') => `GET /users HTTP/1.1\r\nHost: localhost\r\n${head}\r\n`

/** The first bytes of an answer; empty if the connection is closed instead. */
function answerTo(socket: Socket, text: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  socket.once('data', data => resolve(String(data))).once('close', () => resolve(''))
  socket.write(text)
  return within(promise, 'an answer, or the end')
}

/** Connections that stay open until the test ends. */
function connections(port: number) {
  const stack = new DisposableStack()
  const open = async (localAddress = '127.0.0.1', allowHalfOpen = false): Promise<Socket> => {
    const options = { port, host: '127.0.0.1', localAddress, allowHalfOpen }
    const socket = stack.adopt(connect(options), each => each.destroy())
    socket.on('error', () => {}).resume()
    await once(socket, 'connect')
    return socket
  }
  /** Whether a request on a new connection is answered; otherwise the connection was closed without an answer. */
  const answered = async (localAddress?: string, head?: string): Promise<boolean> => {
    return (await answerTo(await open(localAddress), request(head))) !== ''
  }
  return { open, answered, [Symbol.dispose]: () => stack.dispose() }
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
  first.destroy()
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
  const refused = await clients.open('127.0.0.1', true)
  assert.match(await answerTo(refused, upgrade('12')), /^HTTP\/1.1 400 /)
  assert.equal(await clients.answered(), false)
  refused.destroy()
  const other = await clients.open('127.0.0.2')
  assert.match(await answerTo(other, upgrade('13')), /^HTTP\/1.1 101 /)
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
