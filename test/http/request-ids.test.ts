import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startTestServer } from '../support/app.ts'
import { ask, sendRaw } from '../support/http.ts'
import { shared } from '../support/shared.ts'

const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const plain = ['a', 'req_1.2:3-4', '0af7651916cd43dd8448eb211c80319c', 'x'.repeat(128)]
const unusual = [
  ...['', 'two words', 'x'.repeat(129), 'a,b', '<script>', '"quoted"', '{"level":50}', 'a\tb', '../../etc/passwd'],
  ...[Buffer.from('größe').toString('latin1'), 'a\r\nX-Request-Id: b'],
]

describe('The request id', () => {
  const server = shared(() =>
    startTestServer(fastify => {
      fastify.get('/', () => ({ ok: true }))
      fastify.get('/throws', () => Promise.reject(new Error('defect')))
    }),
  )
  const send = (head: string) => sendRaw(server.port, Buffer.from(`GET / HTTP/1.1\r\nHost: x\r\n${head}\r\n`, 'latin1'))

  it('of the client is used in the answer and in the log if it is plain', async () => {
    for (const id of plain) {
      const { headers } = await send(`X-Request-Id: ${id}\r\n`)
      assert.equal(headers.get('x-request-id'), id)
      assert.equal(server.logs.findLast(line => line.msg === 'answered')?.requestId, id)
    }
  })

  it('of the client that is unusual, or sent twice, is replaced by a new one, and not logged', async () => {
    for (const id of unusual) {
      const { headers, status } = await send(`X-Request-Id: ${id}\r\n`)
      assert.equal(status, 200)
      assert.match(headers.get('x-request-id') ?? '', uuid)
      assert.equal(server.logs.at(-1)?.requestId, headers.get('x-request-id'))
      if (id !== '') assert.ok(!JSON.stringify(server.logs).includes(JSON.stringify(id).slice(1, -1)))
    }
    const split = await send('X-Request-Id: a\r\nSet-Cookie: b=c\r\n')
    assert.ok(!split.headers.has('set-cookie'))
    const bare = await send('X-Request-Id: a\nSet-Cookie: b=c\r\n')
    assert.equal(bare.status, 400)
    assert.match(bare.headers.get('x-request-id') ?? '', uuid)
  })

  it('has a well-formed traceparent beside it in every log line of its request, and no malformed one', async () => {
    const { headers } = await ask(`${server.url}/throws`, { headers: { traceparent } })
    const lines = server.logs.filter(line => line.requestId === headers.get('x-request-id'))
    assert.equal(lines.length, 2)
    for (const line of lines) assert.equal(line.traceparent, traceparent)
    server.logs.length = 0
    for (const malformed of [
      traceparent.toUpperCase(),
      traceparent.slice(0, -1),
      `${traceparent}-more`,
      traceparent.replace('00-', '01-'),
      traceparent.replace('b7ad6b7169203331', 'b7ad6b71692033319'),
      '00-aa-bb-cc',
      `${traceparent}, ${traceparent}`,
    ]) {
      await ask(server.url, { headers: { traceparent: malformed } })
      assert.ok(
        !/traceparent|-[ab]/i.test(JSON.stringify(server.logs.map(({ requestId, ...line }) => line))),
        malformed,
      )
    }
  })
})
