import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Wait } from '../../src/lib/waits.ts'
import { execute } from '../faults/execute.ts'
import { connectTo } from '../storage/transaction.ts'
import { startTestApp, startTestAppOn, startTestServer } from '../support/app.ts'
import { engineKinds, postgres, sqlite, type TestDatabase } from '../support/engines.ts'
import { query, read } from '../support/graphql.ts'
import { ask, RawConnection, type Served, sendRaw } from '../support/http.ts'
import type { LogLine } from '../support/logs.ts'
import { freePort } from '../support/ports.ts'
import { serveDuet } from '../support/process.ts'
import { RedisServer, redisMissing } from '../support/redis.ts'
import { createMember, logIn, send, sendText } from '../support/rest.ts'
import { metricOf, SocketClient } from '../support/sockets.ts'
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
  const told = lines.map(line => (JSON.parse(line) as { msg: string }).msg.replace(/ at http.+/, ''))
  assert.deepEqual(told, ['Listening', 'answered', 'answered', 'stopping', 'stopped'])
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

test('of lines that nobody reads in time 4 MiB are kept, and the others left out', () => {
  const code = `const output = (await import('./src/http/logging.ts')).standardOutput()
    for (let line = 0; line < 80; line++) output.write('x'.repeat(99_999) + '\\n')`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { maxBuffer: 1e8 })
  assert.equal(Math.round(stdout.length / 1e6), 4)
})

test('the last lines come in their order, though the first of them waits to be written', () => {
  const code = `const output = (await import('./src/http/logging.ts')).standardOutput()
    ;(await import('node:crypto')).pbkdf2('', '', 100_000, 1, 'sha512', () => {}) // the only thread that could write
    for (let line = 0; line < 9; line++) output.write(line + ' ')
    await output.finish()`
  const env = { ...process.env, UV_THREADPOOL_SIZE: '1' }
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { env, encoding: 'utf8' })
  assert.equal(stdout, '0 1 2 3 4 5 6 7 8 ')
})

test('a log line has a bounded length, whatever a client sends or an error contains', async () => {
  const long = 'x'.repeat(1_000_000)
  await using server = await startTestServer(fastify => {
    fastify.get('/things/:id', () => ({ ok: true }))
    const causes = Array.from({ length: 10 }, () => long)
    fastify.get('/fault', () =>
      Promise.reject(causes.reduce((cause, text) => new Error(text, { cause }), new Error(long))),
    )
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

/** The lines about answers and operations, without what differs from run to run. */
async function answered({ logs }: { logs: LogLine[] }, count: number): Promise<LogLine[]> {
  const isOne = ({ msg }: LogLine) => msg === 'answered' || msg === 'operation ended'
  await waitUntil(() => logs.filter(isOne).length >= count)
  return logs.filter(isOne).map(({ time, ms, requestId, thread, level, ...rest }) => {
    assert.ok(typeof ms === 'number' && ms >= 0)
    assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    return rest
  })
}

describe('the log', () => {
  it('tells client, user, operation, root fields and bytes of each answer and of each operation of a socket', async () => {
    await using app = await startTestAppOn(sqlite)
    const { id: user, token } = await createMember(app)
    app.logs.length = 0
    const create =
      'mutation Write { mine: createPost(title: "é", content: "c") { id } ...more } fragment more on Mutation { __typename }'
    const { body } = await query(app, create, { token })
    await query(app, '{ absent }')
    await send(app, `GET /users/${user}`, undefined, token)
    const client = await SocketClient.connect(app, { token })
    const data = await client.read('query Read { a: posts { id } b: posts { title } me { id } }')
    await client.ask('query Read { absent }')
    const posts = await client.begin('subscription Watch { postAdded { id } }').listening(async title => {
      const text = `mutation { b: createPost(title: "two events", content: "c") { id } createPost(title: "${title}", content: "c") { id } }`
      return (await read<{ createPost: { id: string } }>(app, text, { token })).createPost.id
    })
    posts.complete()
    client.begin('subscription Left { postAdded { id } }')
    await client.read('{ __typename }')
    await client.close()
    const known = (await answered(app, 9)).filter(
      ({ operation, fields }) => operation !== undefined || fields !== 'createPost',
    )
    const from = { client: '127.0.0.1', user }
    const byWatch = known.find(({ operation }) => operation === 'Watch')
    assert.ok(Number(byWatch?.bytes) > 50 * Math.max(2, Number(byWatch?.events)))
    const sent = { msg: 'operation ended', ...from }
    const bytes = Buffer.byteLength(JSON.stringify({ id: 'operation-1', type: 'next', payload: { data } }))
    const written = { operation: 'Write', fields: 'createPost,__typename', status: 200 }
    const over = { msg: 'answered', client: from.client, method: 'POST', path: '/graphql' }
    const expected = [
      { ...over, ...from, ...written, bytes: Buffer.byteLength(body) },
      { ...over, status: 400 },
      { ...over, ...from, method: 'GET', path: `/users/${user}`, status: 200 },
      { ...sent, operation: 'Read', fields: 'posts,me', outcome: 'ok', bytes },
      { ...sent, outcome: 'GRAPHQL_VALIDATION_FAILED', bytes: 0 },
      { ...sent, operation: 'Watch', fields: 'postAdded', outcome: 'stopped' },
      { ...sent, fields: '__typename', outcome: 'ok' },
      { ...sent, operation: 'Left', fields: 'postAdded', outcome: 'stopped' },
    ]
    assert.equal(known.length, expected.length, JSON.stringify(known))
    for (const [at, line] of expected.entries()) assert.partialDeepStrictEqual(known[at], line)
  })

  it('with LOG_REQUESTS=errors, has a line only for answers from 500 on, and for slow ones', async () => {
    await using app = await startTestAppOn(sqlite, { LOG_REQUESTS: 'errors', MAINTENANCE: 'on' })
    assert.equal((await send(app, 'GET /users')).status, 503)
    await app.app.toggleMaintenance()
    await send(app, 'GET /users')
    await send(app, 'GET /absent')
    using client = await SocketClient.connect(app)
    await client.ask('{ absent }')
    await client.read('{ posts { id } }')
    await execute(app.database, 'alter table payments rename to lost')
    assert.equal((await send(app, 'GET /payments/1')).status, 500)
    await app.app.toggleMaintenance()
    await client.closed
    assert.equal((await send(app, 'GET /orders/1')).status, 503)
    assert.equal((await sendRaw(app.port, 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n')).status, 501)
    await waitUntil(() => app.logs.some(({ path }) => path === '/orders/1'))
    assert.ok(app.logs.some(({ status }) => status === 501))
    const written = (await answered(app, 0)).map(({ status, path }) => `${status} ${path}`)
    assert.deepEqual(written, ['503 /users', '500 /payments/1', '503 /orders/1'])
  })

  for (const kind of engineKinds) {
    it(`contains no e-mail, password, token, argument, text, query or header, nor a path with unusual characters, whatever is sent where, on ${kind.name}`, {
      skip: kind.skip,
    }, async () => {
      await using app = await startTestAppOn(kind, { SLOW_OPERATION_MS: '1' })
      const secret = 'sesame'
      const email = `${secret}@example.com`
      const avatar = `http://${secret}/`
      await send(app, 'POST /users', { name: `${secret} n`, email, password: `${secret} password`, avatar })
      const token = await logIn(app, email, `${secret} password`)
      const headers = { 'idempotency-key': secret, cookie: secret, 'user-agent': secret, traceparent: secret }
      const more = { 'x-forwarded-for': secret, 'x-request-id': `${secret} id`, [`x-${secret}`]: '1' }
      const own = { ...headers, ...more, referer: `http://${secret}/` }
      const lines = [`GET /users?email=${email}`, `GET /users/${secret}@x`, 'GET /users/me', `DELETE /${secret}%40`]
      for (const line of lines) await sendText(app, line, undefined, token, own)
      await sendText(app, 'POST /payments', `{"amount":"${secret}"}`, token, own)
      await send(app, 'POST /tokens', { email, password: `${secret} wrong` })
      await send(app, 'GET /users/me', undefined, secret)
      await ask(`${app.url}/graphql?query={${secret}}&variables=${secret}`, { headers: { origin: `http://${secret}` } })
      const fields = Object.entries({ host: 'localhost', ...own }).map(([name, value]) => `${name}: ${value}\r\n`)
      const head = fields.join('')
      const paths = [`/%0a%7B%22${secret}@`, `/users;a=${secret}`, `/users#${secret}`, '/%zz']
      const posts = [
        'Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{"sesame"',
        `Content-Type: ${secret}/x\r\nContent-Length: 2\r\n\r\n{}`,
        'Content-Length: 99999999\r\n\r\n',
        `Expect: ${secret}\r\n\r\n`,
        `Transfer-Encoding: chunked\r\n\r\n${secret}\r\n`,
      ]
      for (const target of [...paths, `http://u:${secret}@h/users`])
        await sendRaw(app.port, `GET ${target}?${secret} HTTP/1.1\r\n${head}\r\n`)
      for (const rest of posts) await sendRaw(app.port, `POST /users?${secret} HTTP/1.1\r\n${head}${rest}`)
      await sendRaw(app.port, `${secret}\r\n\r\n`)
      await sendRaw(app.port, `CONNECT ${secret}:1 HTTP/1.1\r\n${head}\r\n`)
      using connection = await RawConnection.open(app.port)
      connection.write(`POST /users?${secret} HTTP/1.1\r\n${head}Content-Length: 99\r\n\r\n{"${secret}":`)
      connection.reset()
      await waitUntil(() => app.logs.some(({ msg }) => msg === 'the client disconnected before the answer was sent'))
      const texts = [
        `mutation ($t: String!) { ${secret}: createPost(title: $t, content: "${secret}") { ${secret}: title author { email } } }`,
        `{ ${secret} }`,
        `query { ${secret}(`,
        `query Q($${secret}: ID!) { post(id: $${secret}) { id } }`,
        `subscription { ${secret}: postAdded { ${secret}: title } }`,
      ]
      const client = await SocketClient.connect(app, { token, headers: { cookie: secret } })
      const watching = client.begin(texts[4] ?? '', {}, { id: secret })
      for (const text of texts) {
        const variables = { t: `${secret} title`, [secret]: secret }
        for (const operationName of [undefined, secret])
          await query(app, text, { token, variables, operationName, extensions: { secret } })
        if (text !== texts[4]) await client.ask(text, variables)
      }
      await watching.received(1)
      await client.close()
      using refused = await SocketClient.open(app)
      refused.send({ type: 'connection_init', payload: { Authorization: `Bearer ${secret}` } })
      await refused.closed
      await execute(app.database, 'alter table payments rename to lost')
      const failed = await sendText(app, `GET /payments/1?${secret}`, undefined, token, own)
      assert.equal(failed.status, 500)
      await answered(app, 24)
      const text = JSON.stringify(app.logs)
      assert.ok(text.includes('"waited":{'), 'no slow line')
      for (const word of [secret, token, token.slice(-20)])
        assert.ok(!text.includes(word), JSON.stringify(app.logs.find(line => JSON.stringify(line).includes(word))))
    })
  }
})

/** The line that `find` selects is a warning, and tells that it has waited for this longest. */
async function assertWaited(
  { logs }: { logs: LogLine[] },
  kind: Wait,
  find: (line: LogLine) => boolean,
): Promise<void> {
  await waitUntil(() => logs.some(find))
  const { level, ms, waited, msg } = logs.find(find) ?? {}
  assert.equal(level, 40, String(msg))
  const waits = waited as Partial<Record<Wait, number>>
  const sum = Object.values(waits).reduce((all, each) => all + each, 0)
  const told = `${JSON.stringify(waits)} in ${ms} ms`
  assert.ok(sum <= Number(ms) + 4, told) // each is rounded
  assert.equal(waits[kind], Math.max(takesMs / 2, ...Object.values(waits)), told)
}

const takesMs = 80
const slow = { SLOW_OPERATION_MS: String(takesMs / 2), DATABASE_POOL_MAX: '1', THREADS: '1' }

describe('a slow request or operation is logged as a warning that tells what it waited for', () => {
  for (const kind of engineKinds) {
    it(`locked rows and files, queues and connections, on ${kind.name}`, { skip: kind.skip }, async () => {
      await using app = await startTestAppOn(kind, slow)
      await read(app, 'mutation { createPost(title: "t", content: "c") { id } }', await createMember(app))
      using client = await SocketClient.connect(app)
      const lock = await lockPosts(app.database)
      const like = client.begin('mutation Like { likePost(id: 1) { likes } }')
      await client.read('{ __typename }') // after the like has begun
      await waitUntil(lock.isAwaited)
      const asked = send(app, 'GET /users/1')
      if (kind.kind === 'postgres') await waitUntil(() => isInFlight(app))
      await pause(takesMs)
      await lock.end()
      await Promise.all([like.over(), asked])
      await assertWaited(app, 'statement', ({ operation }) => operation === 'Like')
      if (kind.kind === 'postgres') await assertWaited(app, 'connection', ({ path }) => path === '/users/1')
    })
  }

  it('hashing, a client that sends slowly, and nothing of other requests', async () => {
    const matches = () => pause(takesMs, true)
    await using app = await startTestApp(slow, { passwords: { hash: async () => 'a hash', matches } })
    using connection = await RawConnection.open(app.port)
    const body = '{"name":"a","email":"a@example.com"}'
    connection.write(
      `POST /users HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n{`,
    )
    await send(app, 'POST /tokens', { email: 'a@example.com', password: 'a password' })
    connection.write(body.slice(1))
    await assertWaited(app, 'password', ({ path }) => path === '/tokens')
    await assertWaited(app, 'client', ({ path }) => path === '/users')
  })

  it('an event, once, however many different subscriptions get it late, and no subscription for lasting long', async () => {
    await using app = await startTestApp({ ...slow, SLOW_OPERATION_MS: '1' })
    using client = await SocketClient.connect(app, await createMember(app))
    const late = Array.from({ length: 90 }, (_, n) =>
      client.begin(`subscription { a${n}: postAdded { comments { id } } }`),
    )
    await waitUntil(async () => (await metricOf(app, 'duet_subscription_groups')) === late.length)
    for (const count of [1, 2]) {
      await client.read('mutation { createPost(title: "t", content: "c") { id } }')
      await Promise.all(late.map(each => each.received(count)))
      const told = app.logs.filter(({ msg }) => msg === 'event delivered')
      assert.equal(told.length, count)
      for (const line of told) assert.partialDeepStrictEqual(line, { event: 'post-added', subscribers: 1, level: 40 })
    }
    await client.close()
    const ended = () => app.logs.filter(({ msg, events }) => msg === 'operation ended' && events === 2)
    await waitUntil(() => ended().length === late.length)
    assert.ok(ended().every(({ level }) => level === 30))
  })

  it('Redis', { skip: postgres.skip || (redisMissing() ?? false) }, async () => {
    await using redis = await RedisServer.start()
    await using app = await startTestAppOn(postgres, { ...slow, REDIS_URL: redis.url, RATE_LIMIT_PATHS: '/' })
    redis.signal('SIGSTOP')
    const asked = send(app, 'POST /users', {}) // its body has arrived long before it is read
    await waitUntil(() => isInFlight(app))
    await pause(takesMs)
    redis.signal('SIGCONT')
    await asked
    await assertWaited(app, 'redis', ({ path }) => path === '/users')
  })
})

/** Whether a request is being answered, beside the one that asks. */
async function isInFlight(app: Served): Promise<boolean> {
  return (await metricOf(app, 'duet_http_requests_in_flight')) === 2
}

/** Another connection locks all posts. */
async function lockPosts({ kind, location }: TestDatabase) {
  if (kind === 'sqlite') {
    const file = new DatabaseSync(location)
    file.exec('begin immediate')
    return { isAwaited: () => true, end: async () => file.close() }
  }
  const client = await connectTo(location)
  await client.query('begin; select id from posts for update')
  const waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
  return { isAwaited: async () => (await client.query(waiting)).rowCount === 1, end: () => client.end() }
}
