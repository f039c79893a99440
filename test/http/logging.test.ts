import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../../src/core/errors.ts'
import { startTestServer } from '../support/app.ts'
import { ask, RawConnection, sendRaw } from '../support/http.ts'
import { freePort } from '../support/ports.ts'
import { serveDuet } from '../support/process.ts'
import { waitUntil } from '../support/wait.ts'

test('every answer gives one log line with client, method, path, status, bytes, duration and request id', async () => {
  await using server = await startTestServer(fastify => fastify.get('/things/:id', () => ({ ok: true })))
  const { headers } = await ask(`${server.url}/things/7?token=x`)
  const [line, ...more] = server.logs.filter(each => each.msg === 'answered')
  assert.deepEqual(more, [])
  const { time, ms, ...rest } = line ?? {}
  assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.ok(typeof ms === 'number' && ms >= 0)
  assert.deepEqual(rest, {
    level: 30,
    requestId: headers.get('x-request-id'),
    client: '127.0.0.1',
    method: 'GET',
    path: '/things/7',
    status: 200,
    bytes: 11,
    msg: 'answered',
  })
})

test('the log contains no query, header, body or credential, nor a path with unusual characters, for every outcome of a request', async () => {
  await using server = await startTestServer(
    fastify => {
      fastify.post('/echo', ({ body }) => ({ body }))
      fastify.post('/refuses', () => {
        throw new AppError('bad-input', 'No.')
      })
      fastify.post('/throws', () => {
        throw new Error('defect')
      })
    },
    { bodyLimitBytes: 1024 },
  )
  const head = [
    'Host: secret-host',
    'Authorization: Bearer secret-token',
    'Cookie: secret-cookie=secret-value',
    'Idempotency-Key: secret-key',
    'X-Forwarded-For: secret-address',
    'Referer: http://secret-referer/',
    'User-Agent: secret-agent',
    'Origin: http://secret-origin',
    'X-Request-Id: secret id',
    'traceparent: secret-trace',
    'secret-name: 1',
  ].join('\r\n')
  const body = '{"password":"secret-password"}'
  const json = `${head}\r\nContent-Type: application/json\r\nContent-Length:`
  const odd = ['/%0a%7B%22secret@', '/echo/secret@x', '/echo;token=secret', 'http://u:secret@h/echo', '/echo#secret']
  for (const path of ['/echo', '/refuses', '/throws', '/absent', '/%zz', ...odd]) {
    await sendRaw(server.port, `POST ${path}?a=secret-query HTTP/1.1\r\n${json} ${body.length}\r\n\r\n${body}`)
  }
  for (const bytes of [
    `POST /echo?secret-query HTTP/1.1\r\n${json} ${body.length - 1}\r\n\r\n${body.slice(1)}`,
    `POST /echo?secret-query HTTP/1.1\r\n${json} 99999\r\n\r\n`,
    `POST /echo?secret-query HTTP/1.1\r\n${head}\r\nContent-Type: secret/type\r\nContent-Length: 2\r\n\r\n{}`,
    `POST /echo?secret-query HTTP/1.1\r\n${head}\r\nExpect: secret\r\n\r\n`,
    `POST /echo?secret-query HTTP/1.1\r\n${head}\r\nTransfer-Encoding: chunked\r\n\r\nsecret-chunk\r\n`,
    `DELETE /echo?secret-query#secret HTTP/1.1\r\n${head}\r\n\r\n`,
    `secret-garbage\r\n\r\n`,
    `CONNECT secret-host:1 HTTP/1.1\r\n${head}\r\n\r\n`,
  ]) {
    await sendRaw(server.port, bytes)
  }
  using connection = await RawConnection.open(server.port)
  connection.write(`POST /echo?secret-query HTTP/1.1\r\n${json} 100\r\n\r\n{"secret-body":`)
  await waitUntil(() => server.lifecycle.requestsInFlight === 1)
  connection.reset()
  await waitUntil(() => server.logs.some(line => line.msg === 'the client disconnected before the answer was sent'))

  assert.ok(server.logs.length >= 19, 'not every request was logged')
  assert.doesNotMatch(JSON.stringify(server.logs), /secret|password/)
})

test('apart from the greeting the process prints only JSON lines to stdout, and nothing to stderr', async () => {
  await using duet = serveDuet({ THREADS: '1' })
  const { url } = await duet.address()
  await ask(`${url}/health/ready?secret`)
  await ask(`${url}/nothing`)
  await waitUntil(() => duet.stdout.split('"msg":"answered"').length === 3)
  duet.child.kill('SIGTERM')
  const { code, stdout, stderr } = await duet.outcome()
  assert.equal(code, 0)
  assert.equal(stderr, '')
  assert.doesNotMatch(stdout, /secret/)
  const lines = stdout.split('\n').filter(line => line.startsWith('{'))
  assert.deepEqual(
    lines.map(line => (JSON.parse(line) as { msg: string }).msg.replace(/ at http.+/, '')),
    ['Listening', 'answered', 'answered', 'stopping', 'stopped'],
  )
})

test('the service keeps running if the reader of its stdout goes away, even before the greeting', async () => {
  const port = await freePort()
  await using duet = serveDuet({ PORT: String(port) })
  duet.child.stdout?.destroy()
  const isReady = () => ask(`http://127.0.0.1:${port}/health/ready`).then(({ status }) => status === 200)
  await waitUntil(() => isReady().catch(() => false))
  for (let times = 0; times < 20; times++) assert.ok(await isReady())
  duet.child.kill('SIGTERM')
  const { code, stderr } = await duet.outcome()
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' })
})

test('a log line has a bounded length, whatever a client sends or an error contains', async () => {
  const long = 'x'.repeat(1_000_000)
  await using server = await startTestServer(fastify => {
    fastify.get('/things/:id', () => ({ ok: true }))
    fastify.get('/fault', () => {
      let error = new Error(long)
      for (let count = 0; count < 10; count++) error = new Error(long, { cause: error })
      throw error
    })
    fastify.get('/text', () => Promise.reject(long))
    fastify.get('/object', () => Promise.reject({ toString: null }))
  })
  const many = 'x'.repeat(3_000)
  const head = `User-Agent: ${many}\r\nX-Request-Id: ${many}\r\nTraceparent: 00-${many}\r\nReferer: /\r\n`
  for (const path of [`/things/${many}`, `/${many}`, '/fault', '/text', '/object']) {
    const { status } = await sendRaw(server.port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${head}\r\n`)
    assert.equal(status, path.startsWith('/things') ? 200 : path.length > 100 ? 404 : 500, path.slice(0, 20))
  }
  await sendRaw(server.port, `${many} / HTTP/1.1\r\n\r\n`)
  await waitUntil(() => server.logs.filter(({ msg }) => msg === 'answered').length === 5)
  assert.equal(server.logs.filter(({ level }) => level === 50).length, 3)
  for (const line of server.logs) {
    const { length } = JSON.stringify(line)
    assert.ok(length < (line.level === 50 ? 30_000 : 500), `${length} characters: ${line.msg}`)
  }
})
