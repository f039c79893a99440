import assert from 'node:assert/strict'
import { describe, it, mock, type TestContext } from 'node:test'
import { type PageOptions, StatePage, settled, stopTime } from './state-page.ts'

const status = (code: number, headers = {}) => new Response(null, { status: code, headers })

/** A page for which time passes only when the test says so, and pauses are as short as they can be. */
function begin(t: TestContext, options: PageOptions = {}): StatePage {
  stopTime(t, 'Date')
  t.mock.method(Math, 'random', () => 0)
  return new StatePage(options)
}

async function pass(ms: number): Promise<void> {
  mock.timers.tick(ms)
  await settled()
}

describe('the connection of the console', () => {
  const why = 'GET /graphql'

  /** A page that listens, and has just lost its socket. */
  async function lost(page: StatePage) {
    const state = await page.load('connection')
    state.api.live.subscribe('subscription { postDeleted }', {}, { onData: () => {} })
    await settled()
    assert.deepEqual(state.connection.value, { state: 'live' })
    page.acceptsSockets = false
    page.sockets.at(-1)?.onclose?.({ code: 1006 })
    await settled()
    return state
  }

  it('says that the service is away if it does not answer, until it answers anything, and then listens at once', async t => {
    using page = begin(t)
    const state = await lost(page)
    assert.deepEqual([state.away.value, page.asked, page.sockets.length], [true, [why], 1])
    await state.duet.request('GET', '/users/me').catch(() => {})
    assert.deepEqual([state.away.value, page.sockets.length], [true, 1])
    page.answers['GET /users/me'] = () => status(503)
    await state.duet.request('GET', '/users/me').catch(() => {})
    assert.equal(state.away.value, false)
    await settled()
    assert.deepEqual([state.away.value, page.sockets.length], [true, 2], 'the next socket is refused, too')
    page.acceptsSockets = true
    state.api.live.retryNow()
    assert.deepEqual([state.connection.value, state.away.value], [{ state: 'connecting' }, true])
    await settled()
    assert.deepEqual([state.connection.value, state.away.value], [{ state: 'live' }, false])
  })

  it('asks once for each lost socket, so that a gateway without sockets is not asked without an end', async t => {
    using page = begin(t)
    let code = 200
    // In a later turn, so that questions without an end do not keep the test from seeing them.
    page.answers[why] = () => new Promise(resolve => setImmediate(() => resolve(Response.json({}, { status: code }))))
    const state = await lost(page)
    assert.deepEqual([state.away.value, page.asked.length, page.sockets.length], [false, 1, 1])
    code = 502
    await pass(500)
    assert.deepEqual([state.away.value, page.asked.length, page.sockets.length], [false, 2, 2])
  })

  it('listens at once when the browser is online again, and then takes no late failure for an absence', async t => {
    using page = begin(t)
    const late = Promise.withResolvers<unknown>()
    page.answers[why] = () => late.promise
    const state = await lost(page)
    page.acceptsSockets = true
    page.tell('offline')
    assert.equal(state.online.value, false)
    page.tell('online')
    await settled()
    assert.equal(state.online.value, true)
    late.reject(new TypeError('Lost'))
    await settled()
    assert.deepEqual([state.connection.value, state.away.value], [{ state: 'live' }, false])
  })

  it('asks for nothing while there were too many requests, and listens as soon as that is over', async t => {
    using page = begin(t)
    page.answers[why] = () => status(429, { 'retry-after': '20' })
    const state = await lost(page)
    assert.deepEqual([state.away.value, state.pausedUntil.value], [false, 1_020_000])
    for (let second = 0; second < 19; second++) await pass(1000)
    assert.deepEqual([page.asked.length, state.away.value], [1, false])
    const before = page.sockets.length
    page.acceptsSockets = true
    await pass(1000)
    assert.deepEqual([state.connection.value, page.sockets.length], [{ state: 'live' }, before + 1])
    page.answers['GET /users/me'] = () => status(429)
    await state.duet.request('GET', '/users/me').catch(() => {})
    assert.equal(state.pausedUntil.value, Date.now() + 1000)
    await pass(1000)
    page.sockets.at(-1)?.onclose?.({ code: 1006 })
    await settled()
    assert.equal(page.asked.filter(name => name === why).length, 2, 'at the very end it asks again')
  })
})

describe('the health in the console', () => {
  it('is asked for every two seconds while somebody can see it', async t => {
    using page = begin(t, { settings: { metrics: 'off' } })
    const state = await page.load('health')
    page.answers['GET /health/ready'] = () => ({})
    const stop = state.watchHealth()
    await settled()
    page.document.hidden = true
    await pass(2000)
    assert.equal(page.asked.length, 1)
    page.document.hidden = false
    await pass(2000)
    stop()
    await pass(2000)
    assert.deepEqual(page.asked, ['GET /health/ready', 'GET /health/ready'])
  })

  it('is drawn from two samples on: sums of all series per second, the latest delay, and the newest 60', async t => {
    using page = begin(t, { settings: { metrics: 'open' } })
    const state = await page.load('health', 'session')
    let [requests, events] = [0, 0]
    const lag = 'duet_events_lag_seconds'
    page.answers['GET /metrics'] = (_, headers) =>
      headers.has('authorization')
        ? status(400)
        : new Response(`# HELP duet_sockets 9
duet_http_request_seconds_count{path="/users"} ${requests}
duet_http_request_seconds_count{path="/a b"} ${requests}
duet_http_requests_in_flight 2
duet_sockets 3
${lag}_count ${events}
${lag}_sum ${events * 0.125}
nodejs_eventloop_lag_p99_seconds 0.005
`)
    const stop = state.watchHealth()
    await settled()
    assert.deepEqual(state.points.value, [])
    const next = async (request: number, event: number) => {
      requests += request
      events += event
      await pass(2000)
      const point = state.points.value.at(-1)
      return [point?.requestsPerSecond, point?.eventDelayMs]
    }
    assert.deepEqual(await next(4, 0), [4, Number.NaN])
    assert.deepEqual(await next(1, 2), [1, 125])
    assert.deepEqual(await next(1, 4), [1, 125])
    assert.deepEqual(await next(0, 0), [0, 125])
    const others = { inFlight: 2, sockets: 3, subscriptions: 0, loopDelayMs: 5 }
    assert.deepEqual(state.points.value.at(-1), { requestsPerSecond: 0, eventDelayMs: 125, ...others })
    await next(-1, 0)
    assert.equal(state.points.value.length, 4)
    assert.deepEqual(await next(3, 0), [3, 125]) // it counts from there on
    for (let count = 0; count < 56; count++) await next(3, 0)
    const rates = state.points.value.map((point: { requestsPerSecond: number }) => point.requestsPerSecond)
    assert.deepEqual([rates.length, rates[0]], [60, 1])
    stop()
    state.metricsToken.value = 'A token'
    state.metricsRefused.value = true
    state.visits.value++
    assert.deepEqual([state.points.value, state.metricsToken.value], [[], ''], 'the next user gets neither')
    assert.equal(state.metricsRefused.value, false, 'the next user has tried none')
    state.watchHealth()
    await settled()
    assert.deepEqual(state.points.value, [], 'nor what was counted since')
  })

  it('asks for metrics with the token that was entered, until it is refused, and looks again only after an answer', async t => {
    using page = begin(t, { settings: { metrics: 'token' } })
    const state = await page.load('health')
    let late = Promise.withResolvers<unknown>()
    page.answers['GET /health/ready'] = () => late.promise
    const stop = state.watchHealth()
    await pass(4000)
    assert.deepEqual([page.asked, state.metricsRefused.value], [['GET /health/ready'], false])
    late.resolve(status(503))
    await settled()
    assert.equal(state.readiness.value, 'not ready')
    state.metricsToken.value = 'A token'
    await pass(2000)
    assert.deepEqual([page.asked.at(-1), state.metricsToken.value], ['GET /metrics', 'A token'], 'it was not answered')
    page.answers['GET /metrics'] = (_, headers) => status(headers.get('authorization') === 'Bearer A token' ? 401 : 400)
    await pass(2000)
    assert.deepEqual([state.metricsToken.value, state.metricsRefused.value], ['', true])
    late = Promise.withResolvers()
    await pass(2000)
    stop()
    late.resolve({})
    await settled()
    const before = page.asked.length
    await pass(4000)
    assert.equal(page.asked.length, before, 'nobody looks at it')
  })
})
