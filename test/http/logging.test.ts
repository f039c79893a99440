import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestServer } from '../support/app.ts'
import { ask, sendRaw } from '../support/http.ts'
import { freePort } from '../support/ports.ts'
import { serveDuet } from '../support/process.ts'
import { waitUntil } from '../support/wait.ts'

test('in production the process prints only log lines to stdout, each of them JSON, and nothing to stderr', async () => {
  await using duet = serveDuet({ THREADS: '1', NODE_ENV: 'production' })
  await waitUntil(() => duet.stdout.includes('Listening at'))
  const [, url] = /Listening at (http:[^ ,"]+)/.exec(duet.stdout) ?? []
  for (const path of ['/health/ready', '/nothing']) await ask(url + path)
  await waitUntil(() => duet.stdout.split('"msg":"answered"').length === 3)
  duet.child.kill('SIGTERM')
  const { code, stdout, stderr } = await duet.outcome()
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' })
  const lines = stdout.trimEnd().split('\n')
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
