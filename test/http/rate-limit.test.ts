import assert from 'node:assert/strict'
import { type IncomingMessage, METHODS } from 'node:http'
import { test } from 'node:test'
import { Access } from '../../src/core/access.ts'
import { clientKey, TrustedProxies } from '../../src/http/client-address.ts'
import { startTestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { ask, postJson, RawConnection, sendRaw } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import { atEachTurn, waitUntil } from '../support/wait.ts'

async function start(env: Readonly<Record<string, string>> = {}) {
  const clock = new TestClock()
  const app = await startTestApp({ LOG_LEVEL: 'warn', ...env }, { clock })
  /** The remaining requests of the client after one more request, from the header of its answer. */
  const left = async (target: string, head = '', method = 'GET') => {
    const { headers } = await sendRaw(app.port, `${method} ${target} HTTP/1.1\r\nHost: localhost\r\n${head}\r\n`)
    return remaining(headers.get('ratelimit'))
  }
  return Object.assign(app, { clock, left })
}

function remaining(ratelimit: string | undefined): number | 'not limited' {
  const found = /^"default";r=(\d+);t=\d+$/.exec(ratelimit ?? '')?.[1]
  return found === undefined ? 'not limited' : Number(found)
}

test('R-LIM-1 R-LIM-2 R-LIM-3 R-ERR-16: of 200 requests of one client exactly 100 are accepted, and 100 get 429 with Retry-After, and another address is another client', async () => {
  await using app = await start()
  const users = `${app.url}/api/users`
  const forged = (index: number) => ({ 'x-forwarded-for': `192.0.2.${index % 256}`, forwarded: `for=192.0.2.${index}` })
  const answers = await Promise.all(Array.from({ length: 200 }, (_, index) => ask(users, { headers: forged(index) })))
  for (const { headers } of answers) {
    assert.equal(headers.get('ratelimit-policy'), '"default";q=100;w=60')
    assert.match(headers.get('ratelimit') ?? '', /^"default";r=\d+;t=60$/)
  }
  const passed = answers.filter(({ status }) => status === 200)
  assert.equal(passed.length, 100)
  const left = passed.map(({ headers }) => Number(remaining(headers.get('ratelimit'))))
  assert.deepEqual(new Set(left), new Set(Array(100).keys()))
  const refused = answers.filter(({ status }) => status === 429)
  assert.equal(refused.length, 100)
  for (const { headers, body } of refused) {
    assert.equal(body, '{"error":"Too many requests. Try again later."}')
    assert.equal(headers.get('retry-after'), '60')
    assert.equal(remaining(headers.get('ratelimit')), 0)
  }
  assert.equal((await ask(users, { localAddress: '127.0.0.2' })).status, 200)
})

test('R-LIM-3, R-LIM-4: every request under /api/ and to /graphql counts, in every notation of the path and with every result, in one window', async t => {
  await using app = await start()
  const targets = [
    ...['/api/users', '/api/users?x=1', '/api/', '/api/%zz', '/%61pi/users', '/%61pi/%zz', '/ap%69%2fusers'],
    ...['http://host/api/users', 'HTTP://host/api/users', 'https://user:secret@host:1/%61pi/users'],
    ...['http://host;x/api/users', 'http://host/api/%zz'],
    ...['/graphql', '/graphql?query={me{id}}', '/graphql/', '/%67raphql', 'http://host/graphql'],
  ]
  let expected = 100
  for (const target of targets) assert.equal(await app.left(target), --expected, target)
  assert.equal(await app.left('/api/users', '', 'DELETE'), --expected, '405')
  assert.equal(await app.left('/api/users', '', 'PROPFIND'), --expected)
  assert.equal(await app.left('/api/users', 'Authorization: Bearer x\r\n'), --expected, '401')
  assert.equal(await app.left('/api/users', 'Transfer-Encoding: gzip, chunked\r\n'), --expected, 'a doubtful head')
  for (const [body, type] of Object.entries({ '{': 'application/json', '': 'text/plain' })) {
    const { headers } = await postJson(`${app.url}/api/users`, body, type)
    assert.equal(remaining(headers.get('ratelimit')), --expected)
  }
  t.mock.method(Access.prototype, 'require', assert.fail)
  while (expected > 0) assert.equal(await app.left('/api/users'), --expected, '500')
  assertRefusal(await postJson(`${app.url}/graphql`, '{}'), 429, 'Too many requests. Try again later.')
})

test('R-LIM-3, R-LIM-4: a request counts with every method that Node parses, except OPTIONS', async () => {
  await using app = await start({ RATE_LIMIT_MAX: '1000' })
  // CONNECT has no path, so it is not a request for one.
  const methods = METHODS.filter(method => method !== 'OPTIONS' && method !== 'CONNECT')
  assert.ok(methods.includes('HEAD') && methods.includes('GET') && methods.length > 20, methods.join())
  const uncounted: string[] = []
  let expected = 999
  for (const path of ['/api/users', '/graphql']) {
    for (const method of methods) {
      const { headers } = await ask(app.url + path, { method })
      if (remaining(headers.get('ratelimit')) === expected) expected--
      else uncounted.push(`${method} ${path}`)
    }
  }
  assert.deepEqual(uncounted, [])
})

test('other paths, health, metrics and OPTIONS do not count', async () => {
  await using app = await start({ RATE_LIMIT_MAX: '1' })
  const free = ['/users', '/tokens', '/', '/api', '/apis/users', '/graphqlx', '/API/users', '//api/users', '/x/../api/']
  for (const target of [...free, '/health/live', '/health/ready', '/metrics', '/%2561pi/users', '/users?/api/']) {
    assert.equal(await app.left(target), 'not limited', target)
  }
  assert.equal(await app.left('/api/users', '', 'OPTIONS'), 'not limited')
  assert.equal(await app.left('/api/users'), 0)
})

test('in production every path counts except /, health, metrics and OPTIONS', async () => {
  await using app = await start({ NODE_ENV: 'production', METRICS_TOKEN: 'm', LOG_LEVEL: 'error' })
  const targets = ['/users', '/api', '/nothing', '/a%zz', 'http://host/users', 'ws://host/users']
  for (const [index, target] of [...targets, 'http:///users', '/.well-known/jwks.json'].entries()) {
    assert.equal(await app.left(target), 99 - index, target)
  }
  const free = ['/', '*', 'http://host', '/health/live', '/health/ready', '/metrics', 'http://host/health/live']
  for (const target of free) {
    assert.equal(await app.left(target), 'not limited', target)
  }
  const head = await ask(`${app.url}/health/ready`, { method: 'HEAD' })
  assert.equal(remaining(head.headers.get('ratelimit')), 'not limited')
  assert.equal(await app.left('/users', '', 'OPTIONS'), 'not limited')
})

test('RATE_LIMIT_MAX=0 turns the limit off, also that of requests that it exempts, and RATE_LIMIT_WINDOW_MS sets the window', async () => {
  await using off = await start({ RATE_LIMIT_MAX: '0' })
  for (let done = 0; done < 120; done++) assert.equal((await ask(`${off.url}/api/users`)).status, 200)
  using connection = await RawConnection.open(off.port)
  for (let sent = 0; sent < 21; sent++) {
    connection.write('OPTIONS /api/users HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(100))
    for (let read = 0; read < 100; read++) assert.equal((await connection.response()).status, 204)
  }
  await using app = await start({ RATE_LIMIT_MAX: '1', RATE_LIMIT_WINDOW_MS: '1500' })
  const { headers } = await ask(`${app.url}/api/users`)
  assert.equal(headers.get('ratelimit-policy'), '"default";q=1;w=2')
  app.clock.pass(1_000)
  const refused = await ask(`${app.url}/api/users`)
  assertRefusal(refused, 429)
  assert.equal(refused.headers.get('retry-after'), '1', 'for half a second')
  app.clock.pass(500)
  assert.equal((await ask(`${app.url}/api/users`)).status, 200)
})

test('behind a trusted proxy the client is the right-most address that is not a trusted proxy', async () => {
  await using app = await start({ TRUST_PROXY: '127.0.0.1, 10.0.0.0/8' })
  const left = (forwarded: string) => app.left('/api/users', forwarded && `X-Forwarded-For: ${forwarded}\r\n`)
  const expected: readonly (readonly [forwarded: string, left: number, why?: string])[] = [
    ['192.0.2.1', 99],
    ['203.0.113.9, 192.0.2.1', 98, 'addresses that the client itself sent are ignored'],
    ['192.0.2.7,192.0.2.1,10.1.2.3 , 10.9.9.9', 97],
    ['::FFFF:c000:201, ::ffff:10.0.0.1', 96],
    ['192.0.2.9\r\nX-Forwarded-For: 192.0.2.1', 95, 'two lines are one list'],
    ['192.0.2.2', 99],
    ['2001:db8:1:2::1', 99],
    ['2001:DB8:1:2:ffff:0:0:9', 98, 'a /64 is one client'],
    ['2001:db8:1:3::1', 99],
    ['', 99, 'the proxy itself'],
    ['garbage', 98],
    ['192.0.2.1, unknown', 97],
    ['1.2.3.4:5', 96],
    ['::ffff:c000zz:201', 95],
    ['garbage, 10.0.0.7', 99, 'the farthest trusted address'],
  ]
  for (const [forwarded, count, why] of expected) assert.equal(await left(forwarded), count, why ?? forwarded)
  const forged = { headers: { 'x-forwarded-for': '192.0.2.1' }, localAddress: '127.0.0.2' }
  const direct = await ask(`${app.url}/api/users`, forged)
  assert.equal(remaining(direct.headers.get('ratelimit')), 99, 'the header of an untrusted sender is ignored')
})

test('IPv4 clients are counted by address, in every notation, and IPv6 clients by their /64 network', () => {
  const keys: Readonly<Record<string, string>> = {
    '192.0.2.1': '192.0.2.1',
    '::FFFF:C000:0201': '192.0.2.1',
    '::1': '0:0:0:0',
    '2001:0DB8:0001:0002:0003:0004:0005:0006': '2001:db8:1:2',
    '2001:db8:1:2::': '2001:db8:1:2',
    '::1:2:3:4:5:192.0.2.1': '0:1:2:3',
    '64:ff9b::192.0.2.1': '64:ff9b:0:0',
    'fe80::1%br-lan.1': 'fe80:0:0:0',
    '': '',
  }
  for (const [address, key] of Object.entries(keys)) assert.equal(clientKey(address), key, address)
})

test('only the listed proxies are trusted, by address and by range, in IPv4 and IPv6', () => {
  const clientOf = (ranges: readonly string[], remoteAddress: string, forwarded?: string) =>
    new TrustedProxies(ranges).clientOf({
      socket: { remoteAddress },
      headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
    } as unknown as IncomingMessage)
  assert.equal(clientOf(['127.0.0.1'], '::ffff:127.0.0.1', '192.0.2.1'), '192.0.2.1')
  assert.equal(clientOf(['::1'], '::1', '2001:db8::1'), '2001:db8::1')
  assert.equal(clientOf(['fd00::/8'], 'fd12::1', '192.0.2.1, fd13::2'), '192.0.2.1')
  assert.equal(clientOf(['fd00::/8'], 'fe80::1%eth0', '192.0.2.1'), 'fe80::1%eth0')
  assert.equal(clientOf(['10.0.0.0/8'], '10.0.0.1', ''), '10.0.0.1')
  for (const all of ['0.0.0.0/0', '0.0.0.0/00'])
    assert.equal(clientOf([all], '10.0.0.1', 'fe80::1%eth0, 10.0.0.2'), 'fe80::1%eth0')
  assert.equal(clientOf(['::/0'], 'fd12::1', '192.0.2.1, 2001:db8::1'), '192.0.2.1')
})

test('others have a turn between requests of one client, also on many connections and if they are refused at once', async () => {
  await using app = await start()
  const connections = await Promise.all(Array.from({ length: 10 }, () => RawConnection.open(app.port)))
  const request = (body: string) =>
    `POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  for (const connection of connections) {
    connection.write(request('{}'))
    await connection.response()
  }
  const done = () => connections.filter(({ unread }) => unread.includes('GRAPHQL_PARSE_FAILED')).length
  for (const connection of connections) connection.write(request('{"query":"{"}'))
  const counts = await atEachTurn(done, () => waitUntil(() => done() === 10))
  assert.ok(counts.length >= 4, `turns at ${counts}`)
  for (const connection of connections) connection[Symbol.dispose]()
})
