import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { postJson, RawConnection, type RawResponse } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import { shared } from '../support/shared.ts'
import { clientFrame, metricOf, RawSocket, SocketClient, subprotocol, upgradeLines } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'

const unlimited = { RATE_LIMIT_MAX: '0' }

/** The answer to a WebSocket request. The connection is closed afterwards. */
async function answerTo(port: number, lines: readonly string[]): Promise<RawResponse> {
  using socket = await RawSocket.open(port, lines)
  return socket.handshake
}

describe('A WebSocket request', () => {
  const app = shared(() => startTestApp(unlimited))

  it('is refused with 403 for pages of origins that are not allowed', async () => {
    const allowed = ['https://app.example.com', 'https://b.example.com']
    await using app = await startTestApp({ ...unlimited, CORS_ORIGINS: allowed.join() })
    for (const origin of [...allowed, undefined])
      assert.equal((await answerTo(app.port, upgradeLines({ Origin: origin }))).status, 101, origin)
    const { host, origin: own } = new URL(app.url) // that of the service's own pages
    assert.equal((await answerTo(app.port, upgradeLines({ Host: host, Origin: own }))).status, 101)
    for (const origin of ['http://app.example.com', 'null', '', 'https://app.example.com.x'])
      assertRefusal(await answerTo(app.port, upgradeLines({ Origin: origin })), 403, 'Origin is not allowed')
    assert.equal(await metricOf(app, 'duet_sockets'), 0)
  })

  it('counts as a request, also if its origin is refused, says what is left, and is refused with 429 above the limit', async () => {
    await using app = await startTestApp({ RATE_LIMIT_MAX: '3', CORS_ORIGINS: 'https://app.example.com' })
    assert.equal((await postJson(`${app.url}/graphql`, '{"query":"{ __typename }"}')).status, 200)
    assertRefusal(await answerTo(app.port, upgradeLines({ Origin: 'https://evil.example.com' })), 403)
    const { status, headers } = await answerTo(app.port, upgradeLines({ 'X-Request-Id': 'my-request' }))
    assert.deepEqual([status, headers.get('x-request-id')], [101, 'my-request'])
    assert.ok(headers.get('ratelimit')?.startsWith('"default";r=0;t='))
    const response = await answerTo(app.port, upgradeLines())
    assertRefusal(response, 429, 'Too many requests. Try again later.')
    assert.match(response.headers.get('retry-after') ?? '', /^\d+$/)
    assert.equal(response.headers.get('ratelimit-policy'), '"default";q=3;w=60')
    assertRefusal(await postJson(`${app.url}/graphql`, '{"query":"{ __typename }"}'), 429)
  })

  it('gets the usual answer on every other path, and the connection is closed', async () => {
    for (const path of ['/nothing', '/graphql/', '/api/graphql', '/graphqlx'])
      assertRefusal(await answerTo(app.port, upgradeLines({}, path)), 404, 'Not found')
    assertRefusal(await answerTo(app.port, upgradeLines({}, '/users/999999')), 404, 'User not found')
    assertRefusal(await answerTo(app.port, upgradeLines({ Authorization: 'Bearer nonsense' }, '/users')), 401)
    for (const path of ['/', '/users', '/health/live', '/metrics', '/openapi.json']) {
      using socket = await RawSocket.open(app.port, upgradeLines({}, path))
      assert.equal(socket.handshake.status, 200, path)
      assert.equal(socket.handshake.headers.get('connection'), 'close')
      await waitUntil(() => socket.isEnded)
    }
    assertRefusal(await answerTo(app.port, upgradeLines({}, '/%zz')), 400)
  })

  it('is accepted with a query string, and with frames in the same packet', async () => {
    const request = `${upgradeLines({}, '/graphql?from=here').join('\r\n')}\r\n\r\n`
    using connection = await RawConnection.open(app.port)
    connection.write(Buffer.concat([Buffer.from(request), clientFrame('{"type":"connection_init"}')]))
    await waitUntil(() => connection.unread.includes('connection_ack'))
  })

  it('for another protocol, or with another method, is handled like any request', async () => {
    assert.equal((await answerTo(app.port, upgradeLines({ Upgrade: 'h2c' }, '/health/live'))).status, 200)
    assert.equal((await answerTo(app.port, upgradeLines({ Upgrade: 'websocketx' }))).status, 400)
    const body = '{"query":"{ __typename }"}'
    const [, ...headers] = upgradeLines({ 'Content-Type': 'application/json', 'Content-Length': String(body.length) })
    using socket = await RawSocket.open(app.port, ['POST /graphql HTTP/1.1', ...headers, '', body])
    assert.equal(socket.handshake.body, '{"data":{"__typename":"Query"}}')
  })

  it('with a missing or invalid key, version or list of subprotocols is refused with 400, and with ambiguous headers like any request', async () => {
    const oneHost = 'One Host header required'
    const refused: readonly (readonly [lines: readonly string[], status: number, message?: string])[] = [
      ...[undefined, 'short'].map(key => [upgradeLines({ 'Sec-WebSocket-Key': key }), 400] as const),
      ...[undefined, '7'].map(version => [upgradeLines({ 'Sec-WebSocket-Version': version }), 400] as const),
      ...['a,,b', 'a, a', `${subprotocol} ,\t${subprotocol}`].map(
        list => [upgradeLines({ 'Sec-WebSocket-Protocol': list }), 400] as const,
      ),
      [upgradeLines({ Host: undefined }), 400, oneHost],
      [[...upgradeLines(), 'Host: y'], 400, oneHost],
      [upgradeLines({ Expect: 'a miracle' }), 417],
    ]
    for (const [lines, status, message] of refused) {
      using socket = await RawSocket.open(app.port, lines)
      assertRefusal(socket.handshake, status, message)
      const known = status === 400 && message === undefined ? '13' : undefined
      assert.equal(socket.handshake.headers.get('sec-websocket-version'), known)
      await waitUntil(() => socket.isEnded)
    }
    assert.equal(await metricOf(app, 'duet_sockets'), 0)
  })

  it('on a connection that was used before is accepted, and directly after other requests does not affect their answers', async () => {
    const get = 'GET /users HTTP/1.1\r\nHost: localhost\r\n\r\n'
    const upgrade = `${upgradeLines().join('\r\n')}\r\n\r\n`
    using connection = await RawConnection.open(app.port)
    for (const bytes of [get, get, upgrade]) {
      connection.write(bytes)
      assert.equal((await connection.response()).status, bytes === upgrade ? 101 : 200)
    }
    using hasty = await RawConnection.open(app.port)
    hasty.write(`${get}${get}${get}${upgrade}`)
    for (let n = 0; n < 3; n++) assert.equal((await hasty.response()).status, 200)
  })

  it('that never ends, or is aborted, opens no socket', async () => {
    const bytes = `${upgradeLines().join('\r\n')}\r\n\r\n`
    for (let length = 1; length <= bytes.length; length += 16) {
      const stream = connect(app.port, '127.0.0.1')
      stream.on('error', () => {})
      await once(stream, 'connect')
      stream.write(bytes.slice(0, length))
      stream.resetAndDestroy()
    }
    await waitUntil(async () => (await metricOf(app, 'duet_sockets')) === 0)
    using client = await SocketClient.connect(app)
    assert.deepEqual(await client.read('{ __typename }'), { __typename: 'Query' })
  })
})
