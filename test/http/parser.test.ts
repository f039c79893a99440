import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { startTestServer } from '../support/app.ts'
import { RawConnection, sendRaw } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import { waitUntil } from '../support/wait.ts'

/** A server that records every request that it executes. */
async function startCounting() {
  const executed: string[] = []
  const server = await startTestServer(fastify => {
    fastify.route({
      url: '/thing',
      method: ['GET', 'POST', 'DELETE'],
      handler: ({ method, headers }) => {
        executed.push(method)
        return { proto: Object.getPrototypeOf(headers) === Object.prototype, polluted: 'x' in {} }
      },
    })
    fastify.get('/smuggled', () => executed.push('smuggled'))
  })
  return Object.assign(server, { executed })
}

const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
const json = 'Host: x\r\nContent-Type: application/json\r\n'
const post = `POST /thing HTTP/1.1\r\n${json}`
const chunked = `${post}Transfer-Encoding: chunked\r\n\r\n`
const chunks = `2;x\r\n{}\r\n0\r\n\r\n`

const lengths = ['2\r\nContent-Length: 3', '2\r\nContent-Length: 2', '2, 2', '+2', '0x2', '9'.repeat(23)]
const codings = [
  ...['gzip, chunked', 'chunked, gzip', 'xchunked', 'identity', 'chunked\r\nTransfer-Encoding: identity'],
  ...['\r\n chunked', 'chunked\r\nContent-Length: 4'],
]
const fields = [
  ...['A: b\r\n c', 'A: b\r\n\tc', 'A: b\0c', 'A: b\rB: c', 'Host: y', 'Transfer-Encoding: identity'],
  'Content-Length: 4\r\nTransfer-Encoding: chunked',
]
/** The same request with a bare LF instead of one of its line ends, for each of them. */
const whole = `${chunked.replace('Host', 'A:\r\nHost')}${chunks}`
const bare = Array.from(whole.matchAll(/\r/g), ({ index }) => whole.slice(0, index) + whole.slice(index + 1))

/** Requests that two programs may interpret differently, or that no program should accept. */
const malformed: readonly (string | Uint8Array)[] = [
  ...lengths.map(length => `${post}Content-Length: ${length}\r\n\r\n{}${smuggled}`),
  ...codings.map(coding => `${post}Transfer-Encoding: ${coding}\r\n\r\n${chunks}`),
  `${post}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}${smuggled}`,
  `${post}Transfer-Encoding : chunked\r\n\r\n${chunks}`,
  `POST /thing HTTP/1.0\r\n${json}Transfer-Encoding: chunked\r\n\r\n${chunks}${smuggled}`,
  ...bare,
  whole.replaceAll('\r', ''),
  ...fields.map(field => `GET /thing HTTP/1.1\r\nHost: x\r\n${field}\r\n\r\n${smuggled}`),
  'GET /thing HTTP/1.1\r\n Host: x\r\n\r\n',
  'GET /thing HTTP/1.1\r\n\r\n',
  `${chunked}2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n`,
  ...['FFFFFFFFFFFFFFFFF', '-2'].map(size => `${chunked}${size}\r\n{}\r\n0\r\n\r\n`),
  ...['GET /thing HTTP/1.2', 'FOO /thing HTTP/1.1', 'get /thing HTTP/1.1'].map(line => `${line}\r\nHost: x\r\n\r\n`),
  Uint8Array.of(0, 1, 2, 0xff, 0xfe, 13, 10, 13, 10),
  Buffer.from('1603010200010001fc0303', 'hex'), // the start of TLS
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', // the preface of HTTP/2
  Buffer.from('GET /th\xff HTTP/1.1\r\nHost: x\r\n\r\n', 'latin1'),
]

const otherwiseRefused: readonly (readonly [status: number, bytes: string])[] = [
  [431, `GET /thing HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`],
  [431, `GET /thing HTTP/1.1\r\nHost: x\r\n${'A: b\r\n'.repeat(3_500)}\r\n`],
  [431, `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
  [431, `${chunked}2\r\n{}\r\n0\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`],
  [413, `${chunked}2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`],
  [417, `${post}Expect: x\r\nContent-Length: 2\r\n\r\n{}`],
  [505, `GET /thing HTTP/2.0\r\nHost: x\r\n\r\n${smuggled}`],
  [505, 'GET /thing HTTP/0.9\r\n\r\n'],
  [501, 'CONNECT thing:80 HTTP/1.1\r\nHost: x\r\n\r\n'],
]

test('what is doubtful or too large is refused with its status, nothing is executed, and the connection is closed', async () => {
  await using server = await startCounting()
  for (const [status, bytes] of [...malformed.map(each => [400, each] as const), ...otherwiseRefused]) {
    const what = String(bytes).slice(0, 200)
    using connection = await RawConnection.open(server.port)
    connection.write(bytes)
    const response = await connection.response()
    assert.equal(response.status, status, what)
    assertRefusal(response, status)
    assert.equal(response.headers.get('connection'), 'close', what)
    assert.equal(await connection.closed(), '', `${what}: there was a second answer`)
    assert.deepEqual([connection.wasReset, server.executed], [false, []], what)
    assert.ok(!server.logs.some(line => Number(line.level) > 30), what)
  }
})

test('HTTP/1.0 without Host, a header named __proto__ and Expect: 100-continue are served as usual', async () => {
  await using server = await startCounting()
  const names = ['__proto__', 'constructor', 'prototype', 'toString'].map(name => `${name}: x\r\n`).join('')
  const named = await sendRaw(server.port, `GET /thing HTTP/1.1\r\nHost: x\r\n${names}\r\n`)
  assert.deepEqual([named.status, JSON.parse(named.body)], [200, { proto: true, polluted: false }])
  assert.equal((await sendRaw(server.port, 'GET /thing HTTP/1.0\r\n\r\n')).status, 200)
  using connection = await RawConnection.open(server.port)
  connection.write(`${post}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`)
  assert.equal((await connection.response()).status, 100)
  connection.write('{}')
  assert.equal((await connection.response()).status, 200)
})

test('a refused client that continues sending is read for a second, so that it gets the response and not a reset, and then disconnected', async t => {
  await using server = await startCounting()
  using connection = await RawConnection.open(server.port)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  connection.write('rubbish\r\n\r\n')
  assertRefusal(await connection.response(), 400)
  const [socket] = server.lifecycle.connections
  connection.write('more rubbish')
  while (!socket?.destroyed && (socket?.bytesRead ?? 0) <= 20) await turn()
  t.mock.timers.tick(999)
  assert.equal(socket?.destroyed, false)
  t.mock.timers.tick(1)
  t.mock.timers.reset()
  await waitUntil(() => server.lifecycle.connections.size === 0)
})
