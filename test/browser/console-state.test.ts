import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { DuetError, type ErrorKind, type Live, type Watcher } from '../../client/src/index.ts'
import { type Page, search } from '../../console/src/reading/match.ts'
import { ageOf } from '../../console/src/state/age.ts'
import { follow, reader } from '../../console/src/state/follow.ts'
import { toast, toasts } from '../../console/src/state/messages.ts'
import { moneyIn } from '../../console/src/state/money.ts'
import { problemOf } from '../../console/src/state/problems.ts'
import { clearRequests, curl, logRequest, requests } from '../../console/src/state/requests.ts'
import { FakeStorage, StatePage, settled, stopTime } from './state-page.ts'

const entry = {
  ...{ method: 'GET', path: '/users', url: 'http://127.0.0.1:4000/users', headers: {}, body: undefined },
  ...{ status: 200, startedAt: 0, durationMs: 1, authorized: false, replayed: false, attempt: 1 },
  ...{ rateLimit: undefined, retryAfter: undefined, requestId: undefined },
}

test('the log of the console keeps the newest 200 requests, and 50 health checks beside them', () => {
  for (let count = 0; count < 300; count++) {
    logRequest({ ...entry, path: `/users?after=${count}` })
    logRequest({ ...entry, path: '/metrics' })
  }
  const paths = requests.value.map(({ path }) => path)
  assert.equal(paths.filter(path => path === '/metrics').length, 50)
  const others = paths.filter(path => path !== '/metrics')
  assert.deepEqual([others.length, others[0], others[199]], [200, '/users?after=299', '/users?after=100'])
  clearRequests()
  assert.deepEqual(requests.value, [])
})

test('a copied curl command names the method only if it differs from the default of curl', () => {
  const url = "'http://127.0.0.1:4000/users'"
  assert.equal(curl(entry), `curl -sS ${url}`)
  assert.equal(curl({ ...entry, method: 'DELETE' }), `curl -sS -X DELETE ${url}`)
  assert.equal(
    curl({ ...entry, method: 'POST', body: "it's Ada's" }),
    `curl -sS ${url} --data-raw 'it'\\''s Ada'\\''s'`,
  )
  assert.equal(curl({ ...entry, method: 'PATCH', body: '{}' }), `curl -sS -X PATCH ${url} --data-raw '{}'`)
  assert.equal(curl({ ...entry, headers: { accept: '*/*' } }), `curl -sS ${url} -H 'accept: */*'`)
  assert.equal(curl({ ...entry, authorized: true }), `curl -sS ${url} -H "Authorization: Bearer $TOKEN"`)
})

test('an age is told in its largest unit, and what is newer than a minute happens now', () => {
  const seconds = [-5, 0, 59, 60, 3599, 3600, 86_399, 86_400, 14 * 86_400, 60 * 86_400, 800 * 86_400]
  const ages = seconds.map(passed => ageOf(new Date(1_000_000_000_000 - passed * 1000), 1_000_000_000_000))
  assert.deepEqual(ages, [
    ...['just now', 'just now', 'just now', '1 minute ago', '59 minutes ago', '1 hour ago', '23 hours ago'],
    ...['yesterday', '2 weeks ago', '2 months ago', '2 years ago'],
  ])
})

test('the search in the documentation takes each character as it is typed, and finds guides before records of decisions', () => {
  const pages: readonly Page[] = ['docs/decisions/1', 'docs/limits'].map(address => [
    address,
    'Limits (of 5.5 s)',
    [['a', 'Waiting (5.5 s)', 'Clients that wait for 5.5 s or longer']],
  ])
  for (const text of ['(5.5', '5.5 s)']) {
    const addresses = search(pages, text).map(({ address }) => address)
    assert.deepEqual(addresses, ['docs/limits#a', 'docs/decisions/1#a'], text)
  }
  for (const text of ['5x5', '[', ' ']) assert.deepEqual(search(pages, text), [], text)
})

test('money is shown and typed in the currency of the service, exactly, and without one as plain numbers', () => {
  const euros = moneyIn({ code: 'EUR', digits: 2 })
  const texts = ['€36.07', '€1.20', '€10,000,000,000.00', '€0.005']
  assert.deepEqual([3607, 120, 1_000_000_000_000, 0.5].map(euros.text), texts)
  const typed = ['36.07', '36,07', ' 36.7 ', '36', '0.29', '10000000000', '36.071', '1,234.56', '-1', '', '1e3', 'x']
  const read = [3607, 3607, 3670, 3600, 29, 1e12, ...Array(6).fill(undefined)]
  for (const [index, text] of typed.entries()) assert.equal(euros.amountOf(text), read[index], text)
  const yen = moneyIn({ code: 'JPY', digits: 0 })
  assert.deepEqual([yen.text(3607), yen.amountOf('1.5')], ['¥3,607', undefined])
  const plain = moneyIn(undefined)
  assert.deepEqual([3607, 49.9].map(plain.text), ['3,607', '49.90'])
  assert.deepEqual([plain.amountOf('3607'), plain.amountOf('36.07')], [3607, undefined])
  const decimal = (text: string) => plain.amountOf(text, plain.decimals)
  assert.deepEqual(['3607', '36.07', '49.9'].map(decimal), [3607, 36.07, 49.9])
  for (const money of [euros, plain]) assert.ok(money.amountOf(money.example))
})

test('an address leads to its view, and a place on the page to none', async () => {
  using page = new StatePage({ hash: '#/users/7' })
  const { routeOf, href, route } = await page.load('route')
  assert.deepEqual(route.value, { name: 'users', id: '7' })
  const views = {
    feed: ['', '#/', '#/feed', '#feed', '#/posts', '#/posts/', '#/?a=b'],
    'posts a/b': ['#/posts/a%2Fb', '#/posts/a%2Fb?x=/y'],
    'users 50%': ['#/users/50%'],
    users: ['#/users', '#/users/', '#users', '#/users?q=/a'],
    missing: ['#/nowhere', '#/users/7/8', '#/users/7/', '#/health/7', '#/Users'],
    '': ['#content', '#users/7'],
  }
  for (const [view, addresses] of Object.entries(views)) {
    for (const address of addresses) assert.equal(Object.values(routeOf(address) ?? {}).join(' '), view, address)
  }
  assert.deepEqual([href('users'), href('users', 7), href('posts', 'a/b')], ['#/users', '#/users/7', '#/posts/a%2Fb'])
  using other = new StatePage({ hash: '#content' })
  assert.deepEqual((await other.load('route')).route.value, { name: 'feed' })
})

test('the way back knows where the user came from, how far the view was scrolled, and no filter or secret', async () => {
  using page = new StatePage({ hash: '#/orders' })
  const { history } = page
  const { route, query, go, goBack, hideId, keepPlace, filterBy } = await page.load('route', 'query')
  filterBy({ status: 'shipped', user: '7' })
  filterBy({ user: '' })
  assert.deepEqual([history.hash, String(query.value)], ['#/orders?status=shipped', 'status=shipped'])
  keepPlace()
  const seen: string[] = []
  route.subscribe(() => seen.push(`${Object.values(route.value).join(' ')} ${query.value}`))
  go('orders', 5)
  await settled()
  assert.deepEqual([seen.at(-1), history.state], ['orders 5 ', { from: 'orders' }])
  keepPlace()
  assert.deepEqual(history.state, { from: 'orders', top: 120 })
  assert.deepEqual([goBack('feed'), history.hash], [false, '#/orders/5'])
  assert.equal(goBack('orders'), true)
  await settled()
  assert.deepEqual([seen.at(-1), history.state], ['orders status=shipped', { top: 120 }])
  filterBy({ status: '' })
  assert.deepEqual([history.hash, history.state, history.steps.length], ['#/orders', { top: 120 }, 2])
  go('reset', 'secret', { replace: true })
  await settled()
  hideId()
  assert.deepEqual([history.hash, history.state, history.steps[0]?.href], ['#/reset', null, history.href])
  history.assign('#content')
  await settled()
  assert.deepEqual(route.value, { name: 'reset', id: 'secret' })
})

test('what is written survives a reload, and a full storage while the page is open', async () => {
  const session = new FakeStorage()
  const open = async (page: StatePage) => {
    const drafts = await page.load('drafts', 'session')
    drafts.who.value = { id: 1 }
    return drafts
  }
  using page = new StatePage({ session })
  const before = await open(page)
  before.newComment('1').value = 'Hello'
  before.postEdit('2').value = { title: 'Changed' }
  session.isFull = true
  before.newComment('3').value = 'Too much'
  assert.equal(before.newComment('3').value, 'Too much')
  before.postEdit('2').value = undefined
  assert.deepEqual(['1', '2', '3'].map(before.isWrittenAbout), [true, false, true])
  using reloaded = new StatePage({ session })
  const after = await open(reloaded)
  assert.deepEqual([after.newComment('1').value, after.commentEdit('1').value], ['Hello', undefined])
  assert.deepEqual(['1', '2', '3'].map(after.isWrittenAbout), [true, false, false])
})

test('an error is told in words, with the field that is wrong and when a retry may help', () => {
  const problem = (kind: ErrorKind, message = 'No', details = {}) => problemOf(new DuetError(kind, message, details))
  assert.equal(problem('server', 'no database', { requestId: 'abc' }).text, 'No database. Its log knows it as abc.')
  assert.equal(problem('server', 'no database').text.trim(), 'No database.')
  assert.equal(problem('badInput', 'What?').text, 'What?')
  assert.equal(problemOf(new TypeError('No signal')).text, 'TypeError: No signal')
  const kinds = ['offline', 'server', 'rateLimited', 'unauthenticated', 'forbidden', 'badInput'] as const
  assert.equal(kinds.map(kind => Number(problem(kind).retry)).join(''), '111000')
  const at = Date.now()
  for (const [details, seconds] of [[{ retryAfter: 7 }, 7] as const, [{}, 1] as const]) {
    const { until = 0 } = problem('rateLimited', 'No', details)
    assert.ok(until >= at + seconds * 1000 && until <= Date.now() + seconds * 1000)
  }
  const refused = ['Email is already in use', 'items[0].name must be short.', 'title contains a zero', 'No post is']
  const told = refused.map(message => problem('badInput', message)).map(({ field, rest }) => `${field} ${rest}`)
  const expected = ['email is already in use.', 'items[0].name must be short.', 'title contains a zero.']
  assert.deepEqual(told, [...expected, 'undefined undefined'])
})

test('a short message goes after four seconds, and a fourth one takes the place of the first', t => {
  stopTime(t)
  const texts = () => toasts.value.map(({ text }) => text).join()
  for (const text of ['a', 'b', 'c', 'd']) {
    toast(text)
    mock.timers.tick(500)
  }
  assert.equal(texts(), 'b,c,d')
  mock.timers.tick(2500)
  assert.equal(texts(), 'c,d')
  mock.timers.tick(1000)
  assert.equal(texts(), '')
})

test('names are read once each, and posts and payments of a user page by page', async () => {
  using page = new StatePage()
  const state = await page.load('names', 'users', 'payments')
  page.answers.Names = () => ({ u2: { name: 'Grace' }, u3: null, u4: { name: 'Four' } })
  await state.readNames([2, null, 3, 2])
  state.nameKnown([{ id: 2, name: 'G.' }])
  await state.readNames([2, 4])
  await state.readNames([2, null])
  assert.deepEqual([[...state.names.value.values()], page.asked.length], [['G.', 'User 3', 'Four'], 2])

  const posts = [9, 8, 7, 6].map(id => ({ id, title: 'A' }))
  const joined: string[] = []
  const read = (after?: number) =>
    state
      .postsOf(5, (at: string) => joined.push(at))({ limit: 2, after })
      .first()
  page.answers.Written = ({ limit, after }: { limit: number; after: string | null }) => {
    const left = posts.filter(({ id }) => id < Number(after ?? 10)).slice(0, limit)
    return { user: { createdAt: 'then', posts: left.map(({ id, title }) => ({ id: String(id), title })) } }
  }
  assert.deepEqual(await read(), { items: posts.slice(0, 2), more: true })
  assert.deepEqual(await read(8), { items: posts.slice(2), more: false })
  assert.deepEqual([await read(6), joined.length], [{ items: [], more: false }, 3], 'also without posts')
  page.answers.Written = () => ({ user: null })
  assert.deepEqual(await read(), { items: [], more: false })

  page.answers['GET /users/5/orders'] = (_sent, _headers, { searchParams }) => {
    assert.deepEqual(Object.fromEntries(searchParams), { limit: '10', after: '4', status: 'shipped', sort: '-id' })
    const orders = [{ id: 3, amount: 120, _links: { track: { href: '/orders/3/tracking' } } }]
    return Response.json(orders, { headers: { link: '</users/5/orders?after=3>; rel="next"' } })
  }
  page.answers['GET /orders/3/tracking'] = () => ({ shipped_at: 'then' })
  const paid = await state.orderPaymentsOf(5)({ limit: 10, after: 4 }).first()
  assert.deepEqual(paid, { items: [{ id: 3, amount: 120, paidAt: 'then' }], more: true })

  const statuses = [404, 403, 400]
  page.answers['GET /users/5'] = () => new Response(null, { status: statuses.shift() ?? 500 })
  for (const _ of [404, 403]) assert.equal(await state.findUser(5), undefined)
  await assert.rejects(state.findUser(5), { kind: 'badInput' }, 'nobody knows whether there is such a user')
})

test('who is too late to pay or cancel an order sees what it is now, and another error is told', async () => {
  using page = new StatePage()
  const { act, findOrder, readContents } = await page.load('orders')
  const cancel = { href: '/orders/3', method: 'DELETE' }
  const links = { self: { href: '/orders/3' }, pay: { href: '/orders/3/payment', method: 'POST' }, cancel }
  const order = { id: 3, status: 'pending_payment', links }
  const status = (code: number) => () => new Response(null, { status: code })
  page.answers['POST /orders/3/payment'] = status(409)
  const said: string[] = []
  const shipped = { ...order, status: 'shipped' }
  for (const [now, code] of [[() => order, 412] as const, [status(404), 404] as const, [() => shipped, 412] as const]) {
    page.answers['GET /orders/3'] = now
    page.answers['DELETE /orders/3'] = status(code)
    for (const action of ['pay', 'cancel']) said.push((await act(order, action)).overtaken)
  }
  const words = [/paid yet/, /not cancelled yet/, /paid/, /already/, /shipped .* paid twice/, /shipped .* no longer/]
  for (const [index, expected] of words.entries()) assert.match(said[index] ?? '', expected)
  page.answers['GET /orders/3'] = () => order
  page.answers['DELETE /orders/3'] = page.answers['GET /orders/3/items'] = status(403)
  await assert.rejects(act(order, 'cancel'), { kind: 'forbidden' })
  await assert.rejects(readContents(order), { kind: 'forbidden' })
  page.answers['GET /orders/3'] = status(403)
  await assert.rejects(findOrder(3), { kind: 'forbidden' })
  await assert.rejects(act(order, 'pay'), { kind: 'forbidden' }, 'nobody knows what it is now')
})

test('a read serves all who ask at once, is repeated for those who ask while it runs, and tells why it failed', async () => {
  let reads = 0
  let next = Promise.withResolvers<void>()
  const posts = reader(async () => {
    reads++
    await next.promise
  })
  for (let count = 0; count < 3; count++) posts.run()
  await settled()
  assert.deepEqual([reads, posts.busy.value], [1, true])
  for (let count = 0; count < 3; count++) posts.run()
  next.resolve()
  next = Promise.withResolvers()
  await settled()
  assert.deepEqual([reads, posts.busy.value], [2, true])
  posts.run()
  next.reject(new DuetError('rateLimited', 'Too many', { retryAfter: 5 }))
  next = Promise.withResolvers()
  await settled()
  assert.deepEqual([reads, posts.busy.value, posts.problem.value?.kind], [3, true, 'rate-limited'])
  next.reject(new DuetError('offline', 'No answer'))
  await settled()
  assert.deepEqual([reads, posts.busy.value, posts.problem.value?.kind], [3, false, 'offline'])
  next = Promise.withResolvers()
  next.resolve()
  posts.run()
  await settled()
  assert.deepEqual([reads, posts.problem.value], [4, undefined])
})

test('what is followed is read when events arrive or after a second, and followed again after an error, with longer and longer pauses', t => {
  stopTime(t)
  const begun: { watcher: Watcher<never>; closed: boolean }[] = []
  const live = {
    subscribe(_document: string, _variables: unknown, watcher: Watcher<never>) {
      const one = { watcher, closed: false }
      begun.push(one)
      return { close: () => Object.assign(one, { closed: true }) }
    },
  } as unknown as Live
  let reads = 0
  let ends = 0
  const source = { document: 'subscription { postAdded { id } }', onData: () => {}, onEnd: () => ends++ }
  const start = () => follow(live, [source], () => reads++)
  const stop = start()
  begun[0]?.watcher.onReadAnew?.('start')
  mock.timers.tick(1000)
  assert.equal(reads, 1, 'it is not read twice')

  const failed = new DuetError('badInput', 'Too far behind', { code: 'SUBSCRIPTION_TOO_EXPENSIVE' })
  for (const pause of [2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]) {
    const before = begun.length
    begun.at(-1)?.watcher.onError?.(failed)
    mock.timers.tick(pause - 1)
    assert.equal(begun.length, before)
    mock.timers.tick(1)
    assert.equal(begun.length, before + 1)
  }
  begun.at(-1)?.watcher.onReadAnew?.('start')
  assert.equal(reads, 2)
  begun.at(-1)?.watcher.onError?.(failed)
  mock.timers.tick(2000)
  assert.equal(begun.length, 9, 'after a success the pauses are short again')
  begun.at(-1)?.watcher.onError?.(new DuetError('notFound', 'Post not found'))
  mock.timers.tick(60_000)
  assert.deepEqual([ends, begun.length], [1, 9], 'what is gone is not followed again')
  begun.at(-1)?.watcher.onEnd?.()
  assert.equal(ends, 2)
  stop()

  const leave = start()
  mock.timers.tick(1000)
  assert.equal(reads, 3, 'without a socket it is read all the same')
  begun.at(-1)?.watcher.onError?.(failed)
  leave()
  mock.timers.tick(60_000)
  assert.equal(begun.length, 10)
  const known = start()
  known()
  mock.timers.tick(60_000)
  assert.deepEqual([begun.at(-1)?.closed, reads], [true, 3])
})
