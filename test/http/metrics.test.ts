import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, test } from 'node:test'
import fc from 'fast-check'
import prom, { Registry } from 'prom-client'
import { Histogram } from '../../src/http/histogram.ts'
import { Metrics, serveMetrics } from '../../src/http/metrics.ts'
import { version } from '../../src/http/pages/home.ts'
import type { ThreadApp } from '../../src/wiring/running.ts'
import { connectTo } from '../storage/transaction.ts'
import { startTestApp, startTestAppOn, startTestServer } from '../support/app.ts'
import { engineKinds, postgres } from '../support/engines.ts'
import { runs } from '../support/form.ts'
import { ask, type Served, sendRaw } from '../support/http.ts'
import { newRedisDatabase, redisMissing } from '../support/redis.ts'
import { assertRefusal } from '../support/refusal.ts'
import { createMember, createUser, newKey, pay } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { metricOf, SocketClient } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'

function counted(app: Served, labels: string): Promise<number> {
  return metricOf(app, `duet_http_request_seconds_count{${labels}}`)
}

describe('The metrics of an app', () => {
  const app = shared(() => startTestApp())

  it('count requests by method, route and status', async () => {
    for (let times = 0; times < 3; times++) await ask(`${app.url}/health/live?x=${times}`)
    for (const method of ['HEAD', 'DELETE']) await ask(`${app.url}/health/live`, { method })
    const { headers } = await ask(`${app.url}/metrics`)
    assert.match(headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
    assert.equal(await counted(app, 'method="GET",route="/health/live",status="200"'), 3)
    assert.equal(await counted(app, 'method="HEAD",route="/health/live",status="200"'), 1)
    assert.equal(await counted(app, 'method="DELETE",route="/health/live",status="405"'), 1)
  })

  it('tell of the store, the commits, the event loop and the process', async () => {
    for (let times = 0; times < 3; times++) await createUser(app)
    for (let times = 0; times < 3; times++) await ask(`${app.url}/users`)
    for (const name of ['duet_store_read_seconds_count', 'duet_store_commit_verbs_count'])
      assert.ok((await metricOf(app, name)) >= 3, name)
    assert.ok((await metricOf(app, 'duet_store_write_seconds_count')) >= 0)
    assert.equal(await metricOf(app, 'duet_store_troubles_total'), 0)
    const ofProcess = ['process_resident_memory_bytes', 'process_cpu_seconds_total']
    for (const name of ['nodejs_eventloop_lag_p99_seconds', ...ofProcess])
      assert.ok((await metricOf(app, name)) > 0, name)
  })

  it('unknown paths and unusual methods create no series of their own', async () => {
    for (let n = 0; n < 20; n++) await ask(`${app.url}/invented-${n}?x=${n}`)
    await ask(`${app.url}/%zz`)
    const methods = ['PROPFIND', 'TRACE', 'PURGE', 'MKCOL', 'LOCK', 'QUERY']
    for (const asked of methods.flatMap(method => [`${method} /health/live`, `${method} /invented`]))
      await sendRaw(app.port, `${asked} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    const { body } = await ask(`${app.url}/metrics`)
    assert.doesNotMatch(body, new RegExp(`invented|malformed|%zz|"(${methods.join('|')})"`))
    assert.equal(await counted(app, 'method="GET",route="(none)",status="404"'), 20)
    assert.equal(await counted(app, 'method="GET",route="(none)",status="400"'), 1)
    assert.equal(await counted(app, 'method="(other)",route="/health/live",status="405"'), methods.length)
    assert.equal(await counted(app, 'method="(other)",route="(none)",status="404"'), methods.length)
  })
})

/** A server with the metrics of several threads. */
const startOver = (collect: () => Promise<Awaited<ReturnType<Metrics['ofThread']>>[]>) =>
  startTestServer((fastify, lifecycle) => {
    serveMetrics(fastify, new Metrics(), lifecycle, { metricsToken: undefined, metricsOpen: true }, collect)
  })

test('scrapes at the same time share one text', async t => {
  const go = Promise.withResolvers<void>()
  const collect = t.mock.fn(() => go.promise.then(() => []))
  await using server = await startOver(collect)
  const scrapes = [1, 2, 3].map(() => ask(`${server.url}/metrics`))
  await waitUntil(() => server.lifecycle.requestsInFlight === 3)
  go.resolve()
  for (const { status } of await Promise.all(scrapes)) assert.equal(status, 200)
  assert.equal(collect.mock.callCount(), 1)
  await ask(`${server.url}/metrics`)
  assert.equal(collect.mock.callCount(), 2)
})

test('connections to PostgreSQL in use, and reads and writes that wait for one, are told', {
  skip: postgres.skip,
}, async () => {
  await using app = await startTestAppOn(postgres, { DATABASE_POOL_MAX: '2', RATE_LIMIT_MAX: '0', THREADS: '1' })
  const becomes = (isExpected: (inUse: number, waiting: number) => boolean) =>
    waitUntil(async () => {
      const inUse = await metricOf(app, 'duet_pool_connections_in_use')
      return isExpected(inUse, await metricOf(app, 'duet_pool_waiting'))
    })
  await becomes((inUse, waiting) => inUse === 0 && waiting === 0)
  const holder = await connectTo(app.database.location)
  await holder.query('begin; lock table users')
  const writes = [1, 2, 3].map(() => pay(app, newKey()))
  await becomes((inUse, waiting) => inUse > 0 && waiting === 2) // writes leave one of the connections to reads
  const reads = [1, 2, 3].map(() => ask(`${app.url}/users?limit=1`))
  await becomes((inUse, waiting) => inUse === 2 && waiting >= 4)
  await holder.end()
  await Promise.all([...writes, ...reads])
  await becomes((inUse, waiting) => inUse === 0 && waiting === 0)
})

test('of several threads delays are the largest, and what concerns the process is told once', async () => {
  await using app = await startTestApp({ THREADS: '1' })
  const one = await (app.app as ThreadApp).metrics()
  const more = (values: (typeof one)[number]['values']) => values.map(each => ({ ...each, value: each.value + 100 }))
  const other = one.map(metric => ({ ...metric, values: more(metric.values) }))
  await using server = await startOver(async () => [one, other, other])
  const own = (name: string) => one.find(metric => metric.name === name)?.values[0]?.value ?? Number.NaN
  for (const name of ['nodejs_eventloop_lag_p99_seconds', 'duet_events_undelivered_age_seconds'])
    assert.equal(await metricOf(server, name), own(name) + 100, name)
  assert.equal(await metricOf(server, 'process_start_time_seconds'), own('process_start_time_seconds'))
  assert.equal(await metricOf(server, 'duet_events_delivered_total'), 200)
})

test('with METRICS_TOKEN set, the metrics need that token', async () => {
  await using app = await startTestApp({ METRICS_TOKEN: 'the-token', NODE_ENV: 'production' })
  const read = (headers: Record<string, string>) => ask(`${app.url}/metrics`, { headers })
  assert.equal((await read({ authorization: 'Bearer the-token' })).status, 200)
  const wrong = ['', 'Bearer', 'Bearer the-toke', 'Bearer the-tokens', 'Basic the-token', 'the-token']
  for (const authorization of [undefined, ...wrong, 'Bearer the-token, Bearer the-token']) {
    const response = await read(authorization === undefined ? {} : { authorization })
    assertRefusal(response, 401, 'Metrics need their token')
    assert.match(response.headers.get('www-authenticate') ?? '', /^Bearer\b/)
    assert.doesNotMatch(response.body, /the-token/)
  }
  const twice = 'Authorization: Bearer the-token\r\n'.repeat(2)
  assertRefusal(await sendRaw(app.port, `GET /metrics HTTP/1.1\r\nHost: localhost\r\n${twice}\r\n`), 401)
})

test('histograms count as those of prom-client do, and requests have at most 150 series, and one more for each status', async () => {
  const bounds = [0.1, 1, 10]
  const value = fc.oneof(fc.constantFrom(0, ...bounds), fc.double({ min: 0, max: 20, noNaN: true }))
  const observed = fc.array(fc.tuple(value, fc.constantFrom('GET', 'POST'), fc.constantFrom(200, 404)))
  await fc.assert(
    fc.asyncProperty(observed, async all => {
      const [own, theirs] = [new Registry(), new Registry()]
      const labelled = new Histogram(own, 'labelled', 'help', bounds)
      const unlabelled = new Histogram(own, 'unlabelled', 'help', bounds).unlabelled()
      const shared = { help: 'help', buckets: [...bounds], registers: [theirs] }
      const oracle = new prom.Histogram({ ...shared, name: 'labelled', labelNames: ['method', 'status'] })
      const plainOracle = new prom.Histogram({ ...shared, name: 'unlabelled' })
      for (const [value, method, status] of all) {
        labelled.observe(value, `${method} ${status}`, isOther => (isOther ? assert.fail() : { method, status }))
        oracle.observe({ method, status }, value)
        unlabelled(value)
        plainOracle.observe(value)
      }
      assert.equal(await own.metrics(), await theirs.metrics())
    }),
    { numRuns: runs(50, 1000) },
  )
  const metrics = new Metrics()
  for (let n = 0; n < 149; n++) metrics.requests.observe(0, `${n}`, () => ({ n }))
  const open = { metricsToken: undefined, metricsOpen: true }
  await using server = await startTestServer((fastify, lifecycle) => serveMetrics(fastify, metrics, lifecycle, open))
  for (const method of ['GET', 'GET', 'POST', 'POST']) await ask(`${server.url}/invented`, { method })
  for (const labels of ['method="GET",route="(none)",status="404"', 'method="(other)",route="(other)",status="404"'])
    assert.equal(await counted(server, labels), 2)
})

/** The metrics of the guide, with the labels of each, on one engine. */
function metricsInGuide(engine: string): Map<string, readonly string[]> {
  const guide = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'operations.md'), 'utf8')
  const rows = Array.from(guide.matchAll(/^\| (`(?:duet|nodejs|process)_.*?) \|(.*?)\| (.*) \|$/gm))
  const isHere = (meaning = '') => engine === 'postgres' || !meaning.startsWith('PostgreSQL:')
  const named = (text = '') => text.match(/\w+/g) ?? []
  return new Map(
    rows
      .filter(([, , , meaning]) => isHere(meaning))
      .flatMap(([, names, labels]) => named(names).map(name => [name, named(labels).toSorted()])),
  )
}

/** The metrics in a text for Prometheus, with the labels of each. They are unknown if there is no series yet. */
function metricsIn(text: string): Map<string, readonly string[] | undefined> {
  const found = Array.from(text.matchAll(/^# TYPE (\w+) (\w+)$/gm), ([, name = '', type]) => {
    const series = new RegExp(`^${name}${type === 'histogram' ? '_count' : ''}(?:\\{(.*)\\})? `, 'm')
    const [first, labels = ''] = series.exec(text) ?? []
    return [name, first === undefined ? undefined : (labels.match(/\w+(?==")/g) ?? []).toSorted()] as const
  })
  return new Map(found)
}

for (const kind of engineKinds) {
  test(`the metrics on ${kind.name}, with Redis and backups, are all in the table of docs/operations.md, with their labels, and no others are; they say what runs here, whether all threads are ready and reach Redis, and how long it takes`, {
    skip: kind.skip || (redisMissing() ?? false),
  }, async () => {
    const env = { RATE_LIMIT_PATHS: '/', BACKUP_DIR: import.meta.dirname, THREADS: '2' }
    await using app = await startTestAppOn(kind, { ...env, REDIS_URL: await newRedisDatabase() })
    await createMember(app)
    using client = await SocketClient.connect(app)
    await client.read('{ posts { id } }')
    const text = (await ask(`${app.url}/metrics`)).body
    const found = metricsIn(text)
    const told = metricsInGuide(kind.kind)
    assert.deepEqual([...found.keys()].toSorted(), [...told.keys()].toSorted())
    for (const [name, labels] of found) assert.deepEqual(labels ?? told.get(name), told.get(name), name)
    const info = `version="${version}",node="${process.version}",engine="${kind.kind}"`
    assert.ok(text.includes(`duet_build_info{${info}} 1\n`), text)
    assert.ok((await metricOf(app, 'duet_redis_seconds_count')) > 0)
    for (const name of ['duet_ready', 'duet_redis_up']) assert.equal(await metricOf(app, name), 1, name)
  })
}
