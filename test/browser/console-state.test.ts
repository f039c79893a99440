import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { DuetError, type Order } from '../../client/src/index.ts'
import { ageOf } from '../../console/src/state/age.ts'
import { mostPosts, withNewest } from '../../console/src/state/lists.ts'
import { toast, toasts } from '../../console/src/state/messages.ts'
import { moneyIn } from '../../console/src/state/money.ts'
import { problemOf } from '../../console/src/state/problems.ts'
import { curl, logRequest, requests } from '../../console/src/state/requests.ts'
import { FakeStorage, StatePage, settled } from './state-page.ts'

const entry = {
  method: 'GET',
  path: '/users',
  url: 'http://127.0.0.1:4000/users',
  status: 200,
  startedAt: 0,
  durationMs: 1,
  rateLimit: undefined,
  retryAfter: undefined,
  requestId: undefined,
  headers: {},
  authorized: false,
  body: undefined,
  replayed: false,
  attempt: 1,
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
})

test('the feed of the console keeps 500 posts, and more only if somebody asked for older ones', () => {
  const ids = (count: number) => Array.from({ length: count }, (_, index) => String(count - index))
  assert.equal(mostPosts, 500)
  assert.deepEqual(withNewest(ids(2), '10'), ['10', '2', '1'])
  assert.deepEqual(withNewest(['12', '2'], '10'), ['12', '10', '2'])
  const full = withNewest(ids(500), '501')
  assert.deepEqual([full.length, full[0], full.at(-1)], [500, '501', '2'])
  assert.equal(withNewest(ids(700), '701').length, 700)
})

test('a copied curl command names the method only if it differs from the default of curl', () => {
  const url = "'http://127.0.0.1:4000/users'"
  assert.equal(curl(entry), `curl -sS ${url}`)
  assert.equal(curl({ ...entry, method: 'DELETE' }), `curl -sS -X DELETE ${url}`)
  assert.equal(curl({ ...entry, method: 'POST', body: "it's" }), `curl -sS ${url} --data-raw 'it'\\''s'`)
  assert.equal(curl({ ...entry, method: 'PATCH', body: '{}' }), `curl -sS -X PATCH ${url} --data-raw '{}'`)
  assert.equal(curl({ ...entry, authorized: true }), `curl -sS ${url} -H "Authorization: Bearer $TOKEN"`)
})

test('an age is told in its largest unit, and what is newer than a minute happens now', () => {
  const ages = [-5, 0, 59, 60, 3599, 3600, 86_399, 86_400, 14 * 86_400, 60 * 86_400, 800 * 86_400]
  assert.deepEqual(
    ages.map(seconds => ageOf(new Date(1_000_000_000_000 - seconds * 1000), 1_000_000_000_000)),
    [
      ...['just now', 'just now', 'just now', '1 minute ago', '59 minutes ago', '1 hour ago', '23 hours ago'],
      ...['yesterday', '2 weeks ago', '2 months ago', '2 years ago'],
    ],
  )
})

test('money is shown and typed in the currency of the service, exactly, and without one as plain numbers', () => {
  const euros = moneyIn({ code: 'EUR', digits: 2 })
  assert.deepEqual([3607, 120, 1_000_000_000_000, 0.5].map(euros.text), [
    '€36.07',
    '€1.20',
    '€10,000,000,000.00',
    '€0.005',
  ])
  const typed = ['36.07', '36,07', ' 36.7 ', '36', '0.29', '10000000000', '36.071', '1,234.56', '-1', '', '1e3', 'x']
  const read = [3607, 3607, 3670, 3600, 29, 1e12, ...Array(6).fill(undefined)]
  assert.deepEqual(
    typed.map(text => euros.amountOf(text)),
    read,
  )
  assert.deepEqual(
    [moneyIn({ code: 'JPY', digits: 0 }).text(3607), moneyIn({ code: 'JPY', digits: 0 }).amountOf('1.5')],
    ['¥3,607', undefined],
  )
  const plain = moneyIn(undefined)
  assert.deepEqual([3607, 49.9].map(plain.text), ['3,607', '49.90'])
  assert.deepEqual(
    ['3607', '36.07'].map(text => plain.amountOf(text)),
    [3607, undefined],
  )
  assert.deepEqual(
    ['3607', '36.07', '49.9'].map(text => plain.amountOf(text, plain.decimals)),
    [3607, 36.07, 49.9],
  )
  for (const money of [euros, plain]) assert.ok(money.amountOf(money.example))
})

interface Routes
  extends Record<'go' | 'goBack' | 'hideId' | 'keepPlace' | 'filterBy', (...values: unknown[]) => unknown> {
  readonly route: { readonly value: object; subscribe(listen: () => void): void }
  readonly query: { readonly value: URLSearchParams }
  routeOf(hash: string): object | undefined
  href(name: string, id?: string | number): string
}

test('an address leads to its view, and a place on the page to none', async () => {
  using page = new StatePage({ hash: '#/users/7' })
  const { routeOf, href, route } = await page.load<Routes>('route')
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
  assert.deepEqual((await other.load<Routes>('route')).route.value, { name: 'feed' })
})

test('the way back knows where the user came from, how far the view was scrolled, and no filter or secret', async () => {
  using page = new StatePage({ hash: '#/orders' })
  const { history } = page
  const { route, query, go, goBack, hideId, keepPlace, filterBy } = await page.load<Routes>('route', 'query')
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

interface Drafts extends Record<'newComment' | 'postEdit' | 'commentEdit', (id: string) => { value: unknown }> {
  readonly who: { value: object }
  isWrittenAbout(id: string): boolean
}

test('what is written survives a reload, and a full storage while the page is open', async () => {
  const session = new FakeStorage()
  const open = async (page: StatePage) => {
    const drafts = await page.load<Drafts>('drafts', 'session')
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

test('an error is told in words, with what may help', () => {
  const server = problemOf(new DuetError('server', 'no database', { requestId: 'abc' }))
  assert.deepEqual([server.text, server.retry], ['No database. Its log knows it as abc.', true])
  assert.equal(problemOf(new DuetError('server', 'Wait!')).text.trim(), 'Wait!')
  assert.deepEqual([problemOf(new TypeError('x')).text, problemOf(new TypeError('x')).retry], ['TypeError: x', false])
  const at = Date.now()
  const { until = 0, retry } = problemOf(new DuetError('rateLimited', 'No', { retryAfter: 7 }))
  assert.ok(retry && until >= at + 7000 && until <= Date.now() + 7000)
  assert.ok((problemOf(new DuetError('rateLimited', 'No')).until ?? 0) >= at + 1000)
  const fields = ['Email is already in use', 'items[0].name must not be empty.', 'title contains a zero', 'It is', 'No']
  assert.deepEqual(
    fields.map(message => problemOf(new DuetError('badInput', message))).map(({ field, rest }) => [field, rest]),
    [
      ['email', 'is already in use.'],
      ['items[0].name', 'must not be empty.'],
      ['title', 'contains a zero.'],
      [undefined, undefined],
      [undefined, undefined],
    ],
  )
})

test('a short message goes after four seconds, and a fourth one takes the place of the first', t => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const texts = () => toasts.value.map(({ text }) => text).join()
  for (const text of ['a', 'b', 'c', 'd']) {
    toast(text)
    mock.timers.tick(1000)
  }
  assert.equal(texts(), 'b,c,d')
  mock.timers.tick(1000)
  assert.equal(texts(), 'c,d')
  mock.timers.tick(2000)
  assert.equal(texts(), '')
})

interface Lists {
  readonly names: { readonly value: ReadonlyMap<number, string> }
  nameKnown(users: readonly object[]): void
  readNames(ids: readonly (number | null)[]): Promise<void>
  postsOf(id: number, joined: (at: string) => void): (options: object) => { first(): Promise<unknown> }
  act(order: Order, action: string): Promise<{ order: object; overtaken?: string }>
  findOrder(id: number): Promise<unknown>
  readContents(order: object): Promise<unknown>
}

test('names are read once each, and posts of a user page by page', async () => {
  using page = new StatePage()
  const { names, nameKnown, readNames, postsOf } = await page.load<Lists>('names', 'users')
  page.answers.Names = () => ({ u2: { name: 'Grace' }, u3: null, u4: { name: 'Four' } })
  await readNames([2, null, 3, 2])
  nameKnown([{ id: 2, name: 'G.' }])
  await readNames([2, 4])
  await readNames([2, null])
  assert.deepEqual([[...names.value.values()], page.asked.length], [['G.', 'User 3', 'Four'], 2])

  const joined: string[] = []
  const sent: unknown[] = []
  let posts = [{ id: '9' }, { id: '8' }, { id: '7' }]
  page.answers.Written = variables => {
    sent.push(variables)
    return { user: { createdAt: 'then', posts } }
  }
  const read = postsOf(5, at => joined.push(at))
  assert.deepEqual(await read({ limit: 2 }).first(), { items: [{ id: 9 }, { id: 8 }], more: true })
  posts = posts.slice(1)
  assert.deepEqual(await read({ limit: 2, after: 9 }).first(), { items: [{ id: 8 }, { id: 7 }], more: false })
  assert.deepEqual(sent, [
    { id: '5', limit: 3, after: null },
    { id: '5', limit: 3, after: '9' },
  ])
  page.answers.Written = () => ({ user: null })
  assert.deepEqual([await read({}).first(), joined], [{ items: [], more: false }, ['then', 'then']])
})

test('who is too late to pay or cancel an order sees what it is now, and another error is told', async () => {
  using page = new StatePage()
  const { act, findOrder, readContents } = await page.load<Lists>('orders')
  const links = { self: { href: '/orders/3' }, pay: { href: '/orders/3/payment', method: 'POST' } }
  const cancel = { href: '/orders/3', method: 'DELETE' }
  const order = { id: 3, status: 'pending_payment', links: { ...links, cancel } } as Order
  const status = (code: number) => () => Response.json({}, { status: code })
  page.answers['DELETE /orders/3'] = status(412)
  page.answers['POST /orders/3/payment'] = status(409)
  const said: (string | undefined)[] = []
  for (const now of [status(404), () => ({ ...order, status: 'shipped' }), () => order]) {
    page.answers['GET /orders/3'] = now
    for (const action of ['pay', 'cancel']) said.push((await act(order, action)).overtaken)
  }
  assert.deepEqual(
    said.map(text => /cancelled (?:meanwhile|already)|shipped|changed/.exec(text ?? '')?.[0]),
    ['cancelled meanwhile', 'cancelled already', 'shipped', 'shipped', 'changed', 'changed'],
  )
  page.answers['DELETE /orders/3'] = () => new Response(null, { status: 204 })
  const { order: now, overtaken } = await act(order, 'cancel')
  assert.deepEqual([now, overtaken], [{ ...order, status: 'cancelled', links: { self: links.self } }, undefined])
  for (const name of ['GET /orders/3', 'GET /orders/3/items', 'DELETE /orders/3']) page.answers[name] = status(403)
  await assert.rejects(act(order, 'cancel'), { kind: 'forbidden' })
  await assert.rejects(findOrder(3), { kind: 'forbidden' })
  await assert.rejects(readContents(order), { kind: 'forbidden' })
  page.answers['GET /orders/3/items'] = status(404)
  assert.equal(await readContents(order), undefined)
})
