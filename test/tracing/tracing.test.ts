import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { it, test } from 'node:test'
import { sql } from '../../src/storage/sql.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds, sqlite } from '../support/engines.ts'
import { query, read } from '../support/graphql.ts'
import { ask, RawConnection, sendRaw } from '../support/http.ts'
import { freePort, listen } from '../support/ports.ts'
import { serveDuet } from '../support/process.ts'
import { createMember, send } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'

const caller = { trace: '0af7651916cd43dd8448eb211c80319c', span: 'b7ad6b7169203331' }
const traceparent = `00-${caller.trace}-${caller.span}-01`

for (const kind of engineKinds) {
  it(`a mutation on ${kind.name} is traced from its request to its commit, and linked to its delivery`, {
    skip: kind.skip,
  }, async () => {
    using receiver = await startReceiver()
    const { spans } = receiver
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_SERVICE_NAME: 'shop' }
    let token = ''
    {
      await using app = await startTestAppOn(kind, env)
      token = (await createMember(app)).token
      using client = await SocketClient.connect(app)
      const watching = client.begin('subscription Watch { postAdded { sesame: title } }')
      await watching.listening(async title => {
        const create = `mutation Write { createPost(title: "${title}", content: "sesame") { sesame: title id } }`
        const body = JSON.stringify({ query: create })
        const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}`, traceparent }
        return JSON.parse((await ask(`${app.url}/graphql`, { method: 'POST', headers, body })).body).data.createPost.id
      })
      await client.read('query Read { posts { id } }')
      await query(app, '{ sesame }')
      const changes = `addComment(postId: 1, text: "T") { id } updateComment(id: 1, text: "U") { id }
        updatePost(id: 1, title: "T") { id } deleteComment(id: 1) deletePost(id: 1)`
      await read(app, `mutation { ${changes} }`, { token })
      assert.deepEqual(await app.engine.read(sql`select kind from outbox where traceparent is null`), [])
      await send(app, 'GET /users/1', undefined, token)
      await send(app, 'OPTIONS /users/1')
      await app.app.toggleMaintenance()
      await send(app, 'GET /users/1')
    }
    const named = (name: string) => spans.filter(span => span.name === name)
    const childrenOf = ({ id }: ReceivedSpan) => spans.filter(({ parent }) => parent === id).map(({ name }) => name)
    // The first writes may have come before the subscription listened.
    const writes = named('POST /graphql').filter(span => span.attributes['graphql.operation.name'] === 'Write')
    const deliveryOf = (id: string) => named('deliver post-added').find(({ links: [link] }) => link?.id === id)
    const write = writes.find(({ id }) => deliveryOf(id)) ?? assert.fail(`${writes.length} writes, none delivered`)
    assert.deepEqual([write.trace, write.parent, write.service], [caller.trace, caller.span, 'shop'])
    assert.partialDeepStrictEqual(write.attributes, {
      'http.request.method': 'POST',
      'http.response.status_code': 200,
      'client.address': '127.0.0.1',
      'user.id': 1,
      'duet.fields': 'createPost',
    })
    const parts = childrenOf(write)
    const verb = kind.kind === 'sqlite' ? ['statement changePosts', 'commit'] : ['statement insert select', 'commit']
    for (const part of ['statement select', 'parse', 'plan', ...verb])
      assert.ok(parts.includes(part), `${part}: ${parts}`)
    for (const part of spans.filter(({ parent, links }) => parent === write.id && links.length === 0))
      assert.ok(part.begun >= write.begun && part.ended <= write.ended && part.ended >= part.begun, part.name)

    const delivery = deliveryOf(write.id) ?? assert.fail()
    assert.equal(delivery.links[0]?.trace, caller.trace)
    assert.deepEqual([delivery.trace, delivery.parent], [caller.trace, write.id])
    assert.ok(childrenOf(delivery).includes('statement select'), String(childrenOf(delivery)))

    const operations = named('graphql operation').map(({ attributes }) => attributes['graphql.operation.name'])
    assert.deepEqual(operations.sort(), ['Read', 'Watch'])
    assert.equal(named('OPTIONS /users/:id')[0]?.attributes['duet.bytes'], 0)
    const rest = named('GET /users/:id')
    const ends = rest.map(span => `${span.attributes['http.response.status_code']} ${span.isFailure}`)
    assert.deepEqual(ends, ['200 false', '503 true'])
    assert.ok(childrenOf(rest[0] ?? assert.fail()).includes('statement select'))
    for (const secret of ['sesame', 'beacon', 'right password', token, '@example.com'])
      assert.ok(!receiver.bodies.some(body => body.includes(secret)), secret)
  })
}

test('each thread sends its spans', async () => {
  using receiver = await startReceiver()
  {
    await using app = await startTestAppOn(sqlite, { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, THREADS: '2' })
    const threads = new Set<unknown>()
    await waitUntil(async () => {
      await sendRaw(app.port, 'GET /users HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
      for (const { thread, msg } of app.logs) if (msg === 'answered') threads.add(thread)
      return threads.size === 2
    })
  }
  assert.equal(new Set(receiver.spans.map(({ connection }) => connection)).size, 2)
})

test('a sampler decides for requests without a trace, and callers for theirs, and what is not sampled adds nothing to the trace of the request before it', async () => {
  using receiver = await startReceiver()
  for (const [sampler, ratio] of [['traceidratio', '0'], ['always_off']]) {
    await using app = await startTestAppOn(sqlite, {
      OTEL_TRACES_SAMPLER: `parentbased_${sampler}`,
      ...(ratio && { OTEL_TRACES_SAMPLER_ARG: ratio }),
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/v1/traces`,
      SLOW_OPERATION_MS: '0', // so nobody is told what the others wait for
    })
    using connection = await RawConnection.open(app.port)
    const unsampled = traceparent.replace(/1$/, '0')
    for (const header of [`traceparent: ${traceparent}\r\n`, '', `traceparent: ${unsampled}\r\n`]) {
      connection.write(`GET /orders/1 HTTP/1.1\r\nHost: localhost\r\n${header}\r\n`)
      assert.equal((await connection.response()).status, 404)
    }
  }
  const names = receiver.spans.map(({ name }) => name).filter(name => /^GET|^statement select/.test(name))
  assert.deepEqual(names.sort(), ['GET /orders/:id', 'GET /orders/:id', 'statement select', 'statement select'])
})

test('a receiver that refuses delays nothing, and is reported once, and again after it has accepted something', async () => {
  using receiver = await startReceiver(400, 400, 200, 400)
  await using app = await startTestAppOn(sqlite, { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, RATE_LIMIT_MAX: '0' })
  // 512 spans are a batch, and those of five seconds. The rest is sent at the end.
  while (receiver.bodies.length < 3) assert.equal((await send(app, 'GET /users')).status, 200)
  await send(app, 'GET /users')
  await app.app[Symbol.asyncDispose]()
  assert.ok(receiver.bodies.length >= 4)
  assert.equal(app.logs.filter(({ msg }) => msg === 'Traces could not be sent').length, 2)
})

test('a receiver that is away does not hold up the end of the process', async () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await freePort()}`, THREADS: '1', DRAIN_MS: '0' }
  await using duet = serveDuet(env)
  const { url } = await duet.address()
  assert.equal((await ask(`${url}/users`)).status, 200)
  const begun = performance.now()
  duet.child.kill('SIGTERM')
  const { code, stdout } = await duet.outcome()
  assert.ok(performance.now() - begun < 10_000)
  assert.equal(code, 0)
  assert.match(stdout, /"msg":"stopped"/)
})

test('without an endpoint, none of the packages is loaded', async () => {
  const hooks = `import { registerHooks } from 'node:module'
    registerHooks({ resolve: (name, context, next) => (console.error(name), next(name, context)) })`
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(hooks)}`
  await using duet = serveDuet({ NODE_OPTIONS, THREADS: '1' })
  await duet.address()
  duet.child.kill('SIGTERM')
  const { stderr } = await duet.outcome()
  const loaded = new Set(stderr.split('\n').filter(name => name.includes('opentelemetry')))
  assert.deepEqual([...loaded], ['@opentelemetry/api'], 'which the package for metrics loads')
})

type ReceivedSpan = ReturnType<typeof spansIn>[number]

/** Receives traces by OTLP over HTTP, as protobuf. */
async function startReceiver(...statuses: number[]) {
  const spans: ReceivedSpan[] = []
  const bodies: string[] = []
  const server = createServer(async (request, response) => {
    assert.deepEqual([request.method, request.url], ['POST', '/v1/traces'])
    assert.equal(request.headers['content-type'], 'application/x-protobuf')
    const body = await buffer(request)
    bodies.push(body.toString('latin1'))
    spans.push(...spansIn(body, request.socket.remotePort))
    response.writeHead(statuses.shift() ?? 200, { 'content-type': 'application/x-protobuf' }).end()
  })
  return {
    url: `http://127.0.0.1:${await listen(server)}`,
    spans,
    /** All bytes that were received. */
    bodies,
    [Symbol.dispose]: () => void server.close().closeAllConnections(),
  }
}

/**
 * The spans of a request of the exporter, which came over this connection. Ids are hexadecimal, times in nanoseconds. The
 * numbers of the fields are those of opentelemetry/proto/trace/v1/trace.proto.
 */
function spansIn(body: Buffer, connection: number | undefined) {
  return all(body, 1).flatMap(ofResource => {
    const service = attributesIn(all(only(ofResource, 1), 1))['service.name']
    return all(ofResource, 2)
      .flatMap(ofScope => all(ofScope, 2))
      .map(span => ({
        name: only(span, 5).toString(),
        trace: only(span, 1).toString('hex'),
        id: only(span, 2).toString('hex'),
        parent: only(span, 4).toString('hex'),
        begun: only(span, 7).readBigUInt64LE(),
        ended: only(span, 8).readBigUInt64LE(),
        attributes: attributesIn(all(span, 9)),
        links: all(span, 13).map(link => ({ trace: only(link, 1).toString('hex'), id: only(link, 2).toString('hex') })),
        isFailure: only(only(span, 15), 3)[0] === 2,
        service,
        connection,
      }))
  })
}

function attributesIn(pairs: readonly Buffer[]): Record<string, unknown> {
  const valueIn = (value: Buffer) =>
    all(value, 1).length > 0 ? only(value, 1).toString() : varint(only(value, 3), 0)[0]
  return Object.fromEntries(pairs.map(pair => [only(pair, 1).toString(), valueIn(only(pair, 2))]))
}

/** The value of a field, or zeros if it is missing. */
const only = (message: Buffer, field: number): Buffer => all(message, field)[0] ?? Buffer.alloc(0)

/** The values of a field of a message, each as its bytes. */
function all(message: Buffer, field: number): Buffer[] {
  const values: Buffer[] = []
  for (let at = 0; at < message.length; ) {
    const [key, start] = varint(message, at)
    let end = start
    if (key % 8 === 0) end = varint(message, start)[1]
    else if (key % 8 === 1) end = start + 8
    else if (key % 8 === 5) end = start + 4
    const [length, bytes] = key % 8 === 2 ? varint(message, start) : [end - start, start]
    if (Math.floor(key / 8) === field) values.push(message.subarray(bytes, bytes + length))
    at = bytes + length
  }
  return values
}

function varint(bytes: Buffer, start: number): [value: number, end: number] {
  let value = 0
  let at = start
  for (let factor = 1; ; factor *= 128, at++) {
    const byte = bytes[at] ?? 0
    value += (byte % 128) * factor
    if (byte < 128) return [value, at + 1]
  }
}
