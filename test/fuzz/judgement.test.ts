import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import type { HttpRequest } from './cases.ts'
import { attempt, lineProblem } from './judge.ts'
import { password } from './world.ts'

// Checks with faulty servers that the fuzzer detects problems. Otherwise a broken fuzzer would find nothing and pass.

const request: HttpRequest = {
  kind: 'request',
  name: 'POST /users',
  method: 'POST',
  target: '/users',
  version: 'HTTP/1.1',
  headers: [['Host', 'x']],
  body: Buffer.from('{"name":"Ann"}'),
  framing: 'length',
}
async function serverThatSays(said: Buffer | undefined) {
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', () => (said === undefined ? socket.end() : socket.write(said)))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { port, [Symbol.dispose]: () => void server.close() }
}

function answer(status: number, body: string, lines: readonly string[] = ['content-type: application/json']): Buffer {
  const head = [`HTTP/1.1 ${status} X`, `content-length: ${body.length}`, 'x-request-id: 1', ...lines]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}

const refusal = '{"error":"No"}'
const errors = (code: string) => JSON.stringify({ errors: [{ message: 'No', extensions: { code } }] })
const toGraphQL: HttpRequest = { ...request, target: '/graphql?x=1' }

const answers: readonly (readonly [HttpRequest, Buffer | undefined, RegExp | undefined])[] = [
  [request, answer(201, '{"id":1}'), undefined],
  [request, answer(400, refusal), undefined],
  [toGraphQL, answer(400, errors('BAD_REQUEST')), undefined],
  [{ ...request, method: 'CONNECT' }, answer(501, '{"error":"CONNECT is not supported"}'), undefined],
  [request, answer(500, refusal), /^status 500/],
  [request, answer(503, refusal), /^status 503/],
  [request, answer(429, refusal), /^status 429/],
  [request, answer(501, refusal), /^status 501/],
  [request, answer(302, refusal), /^status 302/],
  [request, answer(400, '{"message":"No"}'), /^a body of another shape/],
  [request, answer(400, '{"error":"No","stack":"at x"}'), /^a body of another shape/],
  [request, answer(400, errors('BAD_REQUEST')), /^a body of another shape/],
  [toGraphQL, answer(400, errors('INTERNAL_SERVER_ERROR')), /^INTERNAL_SERVER_ERROR/],
  [toGraphQL, answer(400, '{"errors":[]}'), /^no errors/],
  [toGraphQL, answer(400, '{"errors":[{"message":"No"}]}'), /^an error of another shape/],
  [toGraphQL, answer(400, errors('X').replace('No', 'N'.repeat(5000))), /^a message of 5000 characters/],
  [request, answer(200, '{"id":'), /^no JSON/],
  [request, answer(400, 'No', ['content-type: text/html']), /^the type "text\/html"/],
  [request, answer(401, refusal), /^no WWW-Authenticate/],
  [request, answer(405, refusal), /^no Allow/],
  [request, Buffer.from('HTTP/1.1 204 X\r\n\r\n'), /^no X-Request-Id/],
  [request, Buffer.from('What?\r\n\r\n'), /^Not an answer of HTTP/],
  [request, undefined, /^no answer/],
]

test('an answer with an unknown status, shape, type or header is a problem, and so is a missing answer', async () => {
  for (const [sent, said, expected] of answers) {
    using server = await serverThatSays(said)
    const { problem } = await attempt(server.port, sent)
    if (expected === undefined) assert.equal(problem, undefined)
    else assert.match(String(problem), expected)
  }
})

test('a log line with an internal error or a secret is a problem', () => {
  assert.equal(lineProblem('{"level":40,"msg":"x"}', 'token'), undefined)
  assert.match(String(lineProblem('{"level":50,"msg":"x"}', 'token')), /^a fault/)
  for (const secret of ['token', password, 'demo-password', 'ada@example.com']) {
    assert.match(String(lineProblem(JSON.stringify({ level: 30, path: `/${secret}` }), 'token')), /^a secret/)
  }
  assert.match(String(lineProblem('{"level":', 'token')), /^a line that is no JSON/)
})
