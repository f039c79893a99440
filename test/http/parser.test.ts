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

/** Requests that two programs may interpret differently, or that no program should accept. */
const malformed: Readonly<Record<string, string | Uint8Array>> = {
  'Content-Length with Transfer-Encoding': `${post}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n${smuggled}`,
  'Transfer-Encoding with Content-Length': `${post}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n2\r\n{}\r\n0\r\n\r\n${smuggled}`,
  'both lengths on a GET': `GET /thing HTTP/1.1\r\n${json}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
  'two different lengths': `${post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ${smuggled}`,
  'two equal lengths': `${post}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}${smuggled}`,
  'a list of lengths': `${post}Content-Length: 2, 2\r\n\r\n{}${smuggled}`,
  'a signed length': `${post}Content-Length: +2\r\n\r\n{}${smuggled}`,
  'a length in hexadecimal': `${post}Content-Length: 0x2\r\n\r\n{}${smuggled}`,
  'a length too long for a number': `${post}Content-Length: 99999999999999999999999\r\n\r\n{}`,
  'a coding other than chunked': `${post}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
  'chunked not last': `${post}Transfer-Encoding: chunked, gzip\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
  'chunked by another name': `${post}Transfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
  'the coding identity': `GET /thing HTTP/1.1\r\n${json}Transfer-Encoding: identity\r\n\r\n${smuggled}`,
  'two codings': `${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
  'a blank before the colon': `${post}Transfer-Encoding : chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
  'chunks in HTTP/1.0': `POST /thing HTTP/1.0\r\n${json}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n${smuggled}`,
  'bare LF throughout': 'GET /thing HTTP/1.1\nHost: x\n\n',
  'bare LF after the request line': 'GET /thing HTTP/1.1\nHost: x\r\n\r\n',
  'bare LF after a header': 'GET /thing HTTP/1.1\r\nHost: x\nA: b\r\n\r\n',
  'bare LF after an empty header': 'GET /thing HTTP/1.1\r\nHost: x\r\nA:\nB: c\r\n\r\n',
  'bare LF after the head': 'GET /thing HTTP/1.1\r\nHost: x\r\n\n',
  'bare LF after a chunk size': `${chunked}2\n{}\r\n0\r\n\r\n`,
  'bare LF after a chunk': `${chunked}2\r\n{}\n0\r\n\r\n`,
  'bare LF after the last chunk': `${chunked}2\r\n{}\r\n0\r\n\n`,
  'bare LF after a chunk extension': `${chunked}2;x\n{}\r\n0\r\n\r\n`,
  'bare CR as line end': 'GET /thing HTTP/1.1\r\nHost: x\rA: b\r\n\r\n',
  'a folded header': 'GET /thing HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n',
  'a header folded by a tab': 'GET /thing HTTP/1.1\r\nHost: x\r\nA: b\r\n\tc\r\n\r\n',
  'a folded first header': 'GET /thing HTTP/1.1\r\n Host: x\r\n\r\n',
  'a folded Transfer-Encoding': `${post}Transfer-Encoding:\r\n chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
  'U+0000 in a header': 'GET /thing HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n',
  'a length among the trailers': `${chunked}2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n`,
  'a chunk larger than any number': `${chunked}FFFFFFFFFFFFFFFFF\r\n{}\r\n0\r\n\r\n`,
  'a negative chunk': `${chunked}-2\r\n{}\r\n0\r\n\r\n`,
  'no Host': 'GET /thing HTTP/1.1\r\n\r\n',
  'two Hosts': 'GET /thing HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
  'garbage instead of HTTP': Uint8Array.of(0, 1, 2, 0xff, 0xfe, 13, 10, 13, 10),
  'the start of TLS': Buffer.from('16030102000100 01fc0303'.replace(' ', ''), 'hex'),
  'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'HTTP/1.2': 'GET /thing HTTP/1.2\r\nHost: x\r\n\r\n',
  'an invented method': 'FOO /thing HTTP/1.1\r\nHost: x\r\n\r\n',
  'a method in small letters': 'get /thing HTTP/1.1\r\nHost: x\r\n\r\n',
  'bytes beyond ASCII in a URL': Buffer.from('GET /th\xff HTTP/1.1\r\nHost: x\r\n\r\n', 'latin1'),
}

const otherwiseRefused: Readonly<Record<string, readonly [status: number, bytes: string]>> = {
  '20 KB in one header': [431, `GET /thing HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`],
  '20 KB in many headers': [431, `GET /thing HTTP/1.1\r\nHost: x\r\n${'A: b\r\n'.repeat(3_500)}\r\n`],
  '20 KB of URL': [431, `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
  '20 KB of trailers': [431, `${chunked}2\r\n{}\r\n0\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`],
  '20 KB of chunk extensions': [413, `${chunked}2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`],
  'an unmet expectation': [417, `${post}Expect: x\r\nContent-Length: 2\r\n\r\n{}`],
  'HTTP/2 in the words of HTTP/1': [505, `GET /thing HTTP/2.0\r\nHost: x\r\n\r\n${smuggled}`],
  'HTTP/0.9': [505, 'GET /thing HTTP/0.9\r\n\r\n'],
  'a tunnel': [501, 'CONNECT thing:80 HTTP/1.1\r\nHost: x\r\n\r\n'],
}

test('what is doubtful or too large is refused with its status, nothing is executed, and the connection is closed', async () => {
  await using server = await startCounting()
  const refused = Object.entries(malformed).map(([what, bytes]) => [what, [400, bytes]] as const)
  for (const [what, [status, bytes]] of [...refused, ...Object.entries(otherwiseRefused)]) {
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

test('a request before a malformed one keeps its own answer, and nothing follows it', async () => {
  const { promise: go, resolve } = Promise.withResolvers<void>()
  await using server = await startTestServer(fastify =>
    fastify.get('/slow', async () => {
      await go
      return { slow: true }
    }),
  )
  using connection = await RawConnection.open(server.port)
  connection.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\nrubbish\r\n\r\n')
  connection.write('more rubbish\r\n\r\n')
  setImmediate(resolve)
  const response = await connection.response()
  assert.deepEqual([response.status, response.body], [200, '{"slow":true}'])
  assert.equal(response.headers.get('connection'), 'close')
  assert.equal(await connection.closed(), '')
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
