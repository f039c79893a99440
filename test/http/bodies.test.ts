import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { mostPieces, mostValues } from '../../src/http/bodies.ts'
import { startTestServer } from '../support/app.ts'
import { askByFetch, postJson, RawConnection, sendRaw } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'

/** A server that returns the parsed body, and records every body that reached it. */
async function startEcho(bodyLimitBytes = 1024 * 1024) {
  const received: unknown[] = []
  const server = await startTestServer(
    fastify => {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'] as const) {
        fastify.route({
          url: '/echo',
          method,
          handler: ({ body }) => {
            received.push(body)
            return { type: typeof body, array: Array.isArray(body) }
          },
        })
      }
    },
    { bodyLimitBytes },
  )
  return Object.assign(server, { received, echo: `${server.url}/echo` })
}

function chunked(body: string): string {
  return (
    'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n' +
    `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
  )
}

const accepted = [
  ...['application/json', 'APPLICATION/JSON', 'application/json; charset=utf-8', 'application/json;charset="UTF-8"'],
  'application/json ; charset=utf8; profile=x',
]

const refused = [
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/json garbage',
  'application/json; garbage',
  'application/json; charset=utf-16',
  'application/json; charset=utf-16; charset=utf-8',
  'application/json; charset="utf-16',
  'application/json, text/plain',
  'application/jsonp',
  'application/vnd.api+json',
  'json',
  '*/*',
]

test('a body of type JSON is accepted, and one of another type, without a type or with two is refused with 415', async () => {
  await using server = await startEcho()
  for (const type of accepted) assert.equal((await postJson(server.echo, '{}', type)).status, 200, type)
  assert.equal(server.received.splice(0).length, accepted.length)
  for (const type of refused) {
    const bytes = `POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: 2\r\n\r\n{}`
    assertRefusal(await sendRaw(server.port, bytes), 415, 'Content-Type must be application/json')
  }
  const head = 'POST /echo HTTP/1.1\r\nHost: x\r\n'
  assertRefusal(await sendRaw(server.port, `${head}Content-Length: 2\r\n\r\n{}`), 415)
  assertRefusal(await sendRaw(server.port, `${head}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`), 415)
  const twice = 'Content-Type: application/json\r\nContent-Type: text/plain\r\n'
  assertRefusal(await sendRaw(server.port, `${head}${twice}Content-Length: 2\r\n\r\n{}`), 415)
  assert.deepEqual(server.received, [])
})

test('a request without a body needs no Content-Type, and any Content-Type is ignored', async () => {
  await using server = await startEcho()
  for (const method of ['POST', 'DELETE']) {
    for (const header of ['', 'Content-Type: application/json\r\n', 'Content-Type: text/plain\r\n']) {
      const bytes = `${method} /echo HTTP/1.1\r\nHost: x\r\n${header}Content-Length: 0\r\n\r\n`
      assert.equal((await sendRaw(server.port, bytes)).status, 200)
    }
  }
  assert.deepEqual(server.received, Array(6).fill(undefined))
})

const malformed = [
  '{',
  '{"a":1}}',
  "{'a':1}",
  '{"a":1,}',
  'undefined',
  'NaN',
  ' ',
  '\u0000',
  '{"a":"\n"}',
  '['.repeat(mostValues),
]

test('R-ERR-6: a malformed body is refused with 400, and the answer does not repeat its content', async () => {
  await using server = await startEcho()
  for (const body of malformed) {
    assertRefusal(await postJson(server.echo, body), 400, 'Request body is not valid JSON')
  }
  assert.deepEqual(server.received, [])
  const { headers, body } = await postJson(server.echo, '{"password":"hunter2",}')
  assert.doesNotMatch(body + JSON.stringify([...headers]), /hunter2|password/)
})

test('a connection stays usable after a refused body', async () => {
  await using server = await startEcho(1024)
  using connection = await RawConnection.open(server.port)
  for (const body of ['{', JSON.stringify('x'.repeat(2000)), '{}']) {
    const type = 'Content-Type: application/json\r\n'
    connection.write(`POST /echo HTTP/1.1\r\nHost: x\r\n${type}Content-Length: ${body.length}\r\n\r\n${body}`)
  }
  assert.deepEqual(
    [await connection.response(), await connection.response(), await connection.response()].map(each => each.status),
    [400, 413, 200],
  )
})

test('a byte order mark before a body is ignored, and a character that stands for an invalid one is kept', async () => {
  await using server = await startEcho()
  assert.equal((await postJson(server.echo, '\ufeff{"a":"\ufffd"}')).status, 200)
  assert.deepEqual(server.received, [{ a: '\ufffd' }])
})

const manyValues = {
  lists: (count: number) => '['.repeat(count) + ']'.repeat(count),
  'empty lists': (count: number) =>
    `[${Array(count - 1)
      .fill('[]')
      .join('')}]`.replaceAll('][', '],['),
  numbers: (count: number) => `[${Array(count).fill('0').join(',')}]`,
  fields: (count: number) => `{${Array.from({ length: count }, (_, n) => `"${n}":0`).join(',')}}`,
}

test('a body of more than 20,000 values is refused with 400', async () => {
  await using server = await startEcho()
  for (const [what, body] of Object.entries(manyValues)) {
    assertRefusal(await postJson(server.echo, body(40_000)), 400, `Request body has more than ${mostValues} values`)
    assert.equal((await postJson(server.echo, body(9_000))).status, 200, what)
  }
  assert.equal((await postJson(server.echo, manyValues.lists(mostValues))).status, 200)
})

test('brackets and commas inside strings are not counted, also after escaped quotes and backslashes', async () => {
  await using server = await startEcho()
  const text = '\\"[,{'.repeat(30_000)
  const value = { [text.slice(0, 9_000)]: [text, '\\', text, '"', text] }
  assert.equal((await postJson(server.echo, JSON.stringify(value))).status, 200)
  assert.deepEqual(server.received, [value])
})

test('R-ERR-6: bytes that are not UTF-8 are refused with 400', async () => {
  await using server = await startEcho()
  for (const hex of ['22ff22', '22c0af22', '22eda08022', '22e28222']) {
    const body = Uint8Array.from(Buffer.from(hex, 'hex'))
    assertRefusal(await postJson(server.echo, body), 400, 'Request body is not valid UTF-8')
  }
  assert.deepEqual(server.received, [])
})

test('__proto__ and constructor are normal fields of a body, and pollute no prototype', async () => {
  await using server = await startEcho()
  for (const body of [
    '{"__proto__":{"polluted":true},"a":1}',
    '{"a":{"__proto__":{"polluted":true}}}',
    '[{"\\u005f_proto__":{"polluted":true}}]',
    '{"__proto__":null}',
    '{"constructor":{"prototype":{"polluted":true}}}',
  ]) {
    assert.equal((await postJson(server.echo, body)).status, 200)
    assert.ok(!('polluted' in {}))
    const received = server.received.pop()
    assert.equal(JSON.stringify(received), JSON.stringify(JSON.parse(body)))
    assert.equal(Object.getPrototypeOf([received].flat()[0]), Object.prototype)
  }
})

test('a body of exactly the limit is accepted, and one byte more is refused with 413, with and without Content-Length', async () => {
  const limit = 4096
  await using server = await startEcho(limit)
  const ofSize = (bytes: number) => JSON.stringify('x'.repeat(bytes - 2))
  assert.equal((await postJson(server.echo, ofSize(limit))).status, 200)
  assert.equal((await sendRaw(server.port, chunked(ofSize(limit)))).status, 200)
  assert.equal(server.received.length, 2)
  assertRefusal(await postJson(server.echo, ofSize(limit + 1)), 413, 'Request body is too large')
  assertRefusal(await sendRaw(server.port, chunked(ofSize(limit + 1))), 413, 'Request body is too large')
  assert.equal(server.received.length, 2)
})

test('a body with a too large Content-Length is refused before any of it is sent, for every type', async () => {
  await using server = await startEcho(1024)
  for (const type of ['application/json', 'text/plain']) {
    const head = `POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: 1025\r\n\r\n`
    assertRefusal(await sendRaw(server.port, head), 413)
  }
})

test('a client that is still sending a huge body gets the error response, not a reset', async () => {
  await using server = await startEcho()
  const body = new Uint8Array(16 * 1024 * 1024).fill(0x20)
  const stream = new Blob([body]).stream()
  const headers = { 'content-type': 'application/json' }
  for (const sent of [body, stream]) {
    assertRefusal(await askByFetch(server.echo, { method: 'POST', headers, body: sent, duplex: 'half' }), 413)
  }
})

test('a body in more than 4,096 pieces is refused with 413, however small it is', async () => {
  await using server = await startEcho()
  const pieces = (count: number) => `${`1\r\n \r\n`.repeat(count - 2)}2\r\n{}\r\n0\r\n\r\n`
  const head = 'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
  assert.equal((await sendRaw(server.port, head + pieces(mostPieces))).status, 200)
  assertRefusal(await sendRaw(server.port, head + pieces(mostPieces + 10)), 413, 'Request body is too large')
  assert.equal(server.received.length, 1)
})

test('a connection on which a refused body never ends is closed after three seconds', async t => {
  await using server = await startEcho()
  for (const method of ['OPTIONS', 'PURGE', 'POST']) {
    using connection = await RawConnection.open(server.port)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    connection.write(`${method} /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n `)
    const { status } = await connection.response()
    assert.ok(status === 204 || status >= 400, `${status}`)
    t.mock.timers.tick(2_999)
    await turn()
    assert.equal(server.lifecycle.connections.size, 1)
    t.mock.timers.tick(1)
    t.mock.timers.reset()
    await connection.closed()
  }
})

test('a connection stays open after each refused body that ends in time', async t => {
  await using server = await startEcho()
  const warn = t.mock.method(process, 'emitWarning', () => {})
  using connection = await RawConnection.open(server.port)
  for (let n = 0; n < 20; n++) {
    connection.write('POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab')
    assert.equal((await connection.response()).status, 404)
    connection.write('cd')
  }
  connection.write('POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}')
  assert.equal((await connection.response()).status, 200)
  assert.equal(warn.mock.callCount(), 0)
})
