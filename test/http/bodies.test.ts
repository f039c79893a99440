import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { beforeEach, describe, it, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { mostPieces, mostValues } from '../../src/http/bodies.ts'
import { startTestServer } from '../support/app.ts'
import { askByFetch, postJson, RawConnection, sendRaw } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import { shared } from '../support/shared.ts'
import { atEachTurn, waitUntil } from '../support/wait.ts'

const limit = 4096
const head = 'POST /echo HTTP/1.1\r\nHost: x\r\n'
const json = 'Content-Type: application/json\r\n'
const chunked = (...chunks: string[]) =>
  `Transfer-Encoding: chunked\r\n\r\n${chunks.map(each => `${each.length.toString(16)}\r\n${each}\r\n`).join('')}0\r\n\r\n`
const whole = (body: string) => `Content-Length: ${body.length}\r\n\r\n${body}`

/** A server that records every parsed body that reached it. */
async function startEcho(bodyLimitBytes = 1024 * 1024) {
  const received: unknown[] = []
  const server = await startTestServer(
    fastify => {
      fastify.route({ url: '/echo', method: ['POST', 'DELETE'], handler: ({ body }) => received.push(body) && {} })
    },
    { bodyLimitBytes },
  )
  return Object.assign(server, { received, echo: `${server.url}/echo` })
}

const accepted = [
  ...['application/json', 'APPLICATION/JSON', 'application/json; charset=utf-8', 'application/json;charset="UTF-8"'],
  'application/json ; charset=utf8; profile=x',
]

const refused = [
  ...['text/plain', 'multipart/form-data; boundary=x', 'application/jsonp', 'application/vnd.api+json'],
  ...['application/json garbage', 'application/json; garbage', 'application/json\r\nContent-Type: text/plain'],
  ...['', '; charset=utf-8'].map(more => `application/json; charset=utf-16${more}`),
  'application/json; charset="utf-16',
]

const malformed = ['{', '{"a":1}}', "{'a':1}", '{"a":1,}', 'undefined', 'NaN', ' ', '\u0000', '{"a":"\n"}']

const manyValues = {
  lists: (count: number) => '['.repeat(count) + ']'.repeat(count),
  'empty lists': (count: number) => JSON.stringify(Array(count - 1).fill([])),
  numbers: (count: number) => JSON.stringify(Array(count).fill(0)),
  fields: (count: number) => JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [n, 0]))),
}

describe('A body', () => {
  const server = shared(() => startEcho())
  beforeEach(() => {
    server.received.length = 0
  })

  it('of type JSON is accepted, and one of another type, without a type or with two is refused with 415', async () => {
    for (const type of accepted) assert.equal((await postJson(server.echo, '{}', type)).status, 200, type)
    assert.equal(server.received.splice(0).length, accepted.length)
    for (const lines of ['', ...refused.map(type => `Content-Type: ${type}\r\n`)]) {
      const response = await sendRaw(server.port, head + lines + whole('{}'))
      assertRefusal(response, 415, 'Content-Type must be application/json')
    }
    assertRefusal(await sendRaw(server.port, head + chunked('{}')), 415)
    assert.deepEqual(server.received, [])
  })

  it('that is missing needs no Content-Type, and any Content-Type is ignored', async () => {
    for (const method of ['POST', 'DELETE']) {
      for (const type of ['', json, 'Content-Type: text/plain\r\n']) {
        const response = await sendRaw(server.port, head.replace('POST', method) + type + whole(''))
        assert.equal(response.status, 200, type)
      }
    }
    assert.deepEqual(server.received, Array(6).fill(undefined))
  })

  it('R-ERR-6: that is malformed, or not UTF-8, is refused with 400, and the answer does not repeat its content', async () => {
    for (const body of [...malformed, '['.repeat(mostValues), '{"password":"hunter2",}']) {
      const response = await postJson(server.echo, body)
      assertRefusal(response, 400, 'Request body is not valid JSON')
      assert.doesNotMatch(JSON.stringify([...response.headers]), /hunter2|password/)
    }
    for (const hex of ['22ff22', '22c0af22', '22eda08022', '22e28222']) {
      const body = Uint8Array.from(Buffer.from(hex, 'hex'))
      assertRefusal(await postJson(server.echo, body), 400, 'Request body is not valid UTF-8')
    }
    assert.deepEqual(server.received, [])
  })

  it('keeps a character that stands for an invalid one, and loses a byte order mark', async () => {
    assert.equal((await postJson(server.echo, '\ufeff{"a":"\ufffd"}')).status, 200)
    assert.deepEqual(server.received, [{ a: '\ufffd' }])
  })

  it('of more than 20,000 values is refused with 400, without brackets and commas inside strings', async () => {
    for (const [what, body] of Object.entries(manyValues)) {
      assertRefusal(await postJson(server.echo, body(40_000)), 400, `Request body has more than ${mostValues} values`)
      assert.equal((await postJson(server.echo, body(9_000))).status, 200, what)
    }
    assert.equal((await postJson(server.echo, manyValues.lists(mostValues))).status, 200)
    const text = '\\"[,{'.repeat(30_000)
    const value = { [text.slice(0, 9_000)]: [text, '\\', text, '"', text] }
    assert.equal((await postJson(server.echo, JSON.stringify(value))).status, 200)
    assert.deepEqual(server.received.at(-1), value)
  })

  it('is parsed in a turn of its own if it is long, though those of many connections end together', async () => {
    const body = JSON.stringify('x'.repeat(20_000))
    const sockets: Socket[] = []
    server.server.server.on('connection', socket => sockets.push(socket))
    const all = await Promise.all(Array.from({ length: 8 }, () => RawConnection.open(server.port)))
    for (const each of all) each.write(head + json + whole(body).slice(0, -1))
    await waitUntil(() => sockets.length === 8 && sockets.every(({ bytesRead }) => bytesRead > 20_000))
    const counts = await atEachTurn(
      () => server.received.length,
      async () => {
        for (const each of all) each.write('"')
        for (const each of all) assert.equal((await each.response()).status, 200)
      },
    )
    assert.deepEqual(counts, [1, 2, 3, 4, 5, 6, 7, 8])
    for (const each of all) each[Symbol.dispose]()
  })

  it('in more than 1,024 pieces is refused with 413, however small it is', async () => {
    const pieces = (count: number) => head + json + chunked(...Array(count - 1).fill(' '), '{}')
    assert.equal((await sendRaw(server.port, pieces(mostPieces))).status, 200)
    assertRefusal(await sendRaw(server.port, pieces(mostPieces + 10)), 413, 'Request body is too large')
    assert.equal(server.received.length, 1)
  })

  it('has normal fields named __proto__ and constructor, which pollute no prototype', async () => {
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

  it('that is huge and still being sent gets the error response, not a reset', async () => {
    const body = new Uint8Array(16 * 1024 * 1024).fill(0x20)
    const headers = { 'content-type': 'application/json' }
    for (const sent of [body, new Blob([body]).stream()]) {
      assertRefusal(await askByFetch(server.echo, { method: 'POST', headers, body: sent, duplex: 'half' }), 413)
    }
  })

  it('that is refused, before or while it is sent, is discarded, and leaves its connection open', async t => {
    const warn = t.mock.method(process, 'emitWarning', () => {})
    using connection = await RawConnection.open(server.port)
    const smuggled = 'DELETE /echo HTTP/1.1\r\nHost: x\r\n\r\n'
    for (let sent = 0; sent < 12; sent++) {
      for (const [line, status] of Object.entries({ 'POST /nowhere': 404, 'PUT /echo': 405, 'PROPFIND /echo': 405 })) {
        const lines = `${line} HTTP/1.1\r\nHost: x\r\n${json}Content-Length: ${smuggled.length}\r\n\r\n`
        connection.write(lines + smuggled.slice(0, sent))
        assertRefusal(await connection.response(), status)
        connection.write(smuggled.slice(sent))
      }
      connection.write('POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1')
      assertRefusal(await connection.response(), 404)
      connection.write('\r\n \r\n0\r\n\r\n')
    }
    connection.write(head + json + whole('{}'))
    assert.equal((await connection.response()).status, 200)
    assert.deepEqual(server.received, [{}])
    assert.equal(warn.mock.callCount(), 0)
  })
})

test('a body of exactly the limit is accepted, and one byte more is refused with 413, with and without Content-Length', async () => {
  await using server = await startEcho(limit)
  const [fits, exceeds] = [limit, limit + 1].map(bytes => JSON.stringify('x'.repeat(bytes - 2))) as [string, string]
  using connection = await RawConnection.open(server.port)
  for (const way of [whole, chunked]) {
    connection.write(head + json + way(fits) + head + json + way(exceeds))
    assert.equal((await connection.response()).status, 200)
    assertRefusal(await connection.response(), 413, 'Request body is too large')
  }
  assert.equal(server.received.length, 2)
  for (const type of [json, 'Content-Type: text/plain\r\n']) {
    const announced = `${head}${type}Content-Length: ${limit + 1}\r\n\r\n`
    assertRefusal(await sendRaw(server.port, announced), 413) // before any of it is sent
  }
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
