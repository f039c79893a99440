import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ageOf } from '../../console/src/state/age.ts'
import { mostPosts, withNewest } from '../../console/src/state/lists.ts'
import { moneyIn } from '../../console/src/state/money.ts'
import { curl, logRequest, requests } from '../../console/src/state/requests.ts'

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
