import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { browserMissing, openPage } from '../support/browser.ts'
import { ask } from '../support/http.ts'
import { leaveBrowser, sharedBrowser } from '../support/shared-browser.ts'
import { subprotocol } from '../support/sockets.ts'

// The attack: a developer runs Duet with its defaults and visits a foreign page, whose scripts try everything that a
// browser lets them do. The control: the same scripts in a page of an allowed origin, which must succeed.

const skip = browserMissing

/** What a page tried to do: each with what it got, or why it got nothing. */
type Attempts = Readonly<Record<'read' | 'write' | 'simple' | 'socket', string>>

const succeeded = { read: '200 application/json; charset=utf-8', write: '201', socket: 'open' }

/** Runs in the page, whose name is this machine for the browser. `base` is the address under which it tries to reach Duet. */
const attack = (base: string) => `(async () => {
  const outcome = attempt => attempt.then(String, error => 'failed: ' + error.name)
  const user = name => JSON.stringify({ name, email: name + '@evil.example' })
  const read = fetch('${base}/users').then(answer => answer.status + ' ' + answer.headers.get('content-type'))
  const json = { 'content-type': 'application/json' }
  const write = fetch('${base}/users', { method: 'POST', headers: json, body: user('written') }).then(({ status }) => status)
  const query = JSON.stringify({ query: 'mutation { likePost(id: 1) { likes } }' })
  const types = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/json']
  const sendSimply = type => fetch('${base}/graphql', { method: 'POST', mode: 'no-cors', body: new Blob([query], { type }) })
  const beacon = () => navigator.sendBeacon('${base}/users/1/orders', new Blob([user('beacon')], { type: 'text/plain' }))
  const simple = Promise.all(types.map(sendSimply)).then(answers => beacon() && answers.map(({ type }) => type).join(' '))
  const socket = new Promise(resolve => {
    const socket = new WebSocket('${base}/graphql'.replace('http', 'ws'), '${subprotocol}')
    socket.onopen = () => resolve('open')
    socket.onerror = () => resolve('failed')
  })
  const frame = document.createElement('iframe')
  frame.name = 'hidden'
  document.body.append(frame)
  const form = document.createElement('form')
  Object.assign(form, { method: 'post', enctype: 'text/plain', action: '${base}/users', target: 'hidden' })
  const field = document.createElement('input')
  Object.assign(field, { name: '{"name":"form","email":"form@evil.example","x":"', value: '"}' })
  form.append(field)
  document.body.append(form)
  const submitted = new Promise(resolve => frame.addEventListener('load', resolve))
  form.submit()
  const attempts = { read: await outcome(read), write: await outcome(write), simple: await outcome(simple), socket: await socket }
  await submitted
  return attempts
})()`

const site = createServer((_request, response) =>
  response.setHeader('content-type', 'text/html').end('<!doctype html><title>Any page</title>'),
)

before(() => new Promise<void>(resolve => site.listen(0, '127.0.0.1', resolve)))
after(() => site.close())
after(leaveBrowser)

const sitePort = () => (site.address() as AddressInfo).port

async function startDuet(env: Readonly<Record<string, string>> = {}) {
  const app = await startTestApp({ RATE_LIMIT_MAX: '0', DEMO_DATA: 'true', ...env })
  const state = async (): Promise<[users: number, likes: number]> => [
    JSON.parse((await ask(`${app.url}/users`)).body).length,
    JSON.parse((await ask(`${app.url}/graphql?query={post(id:1){likes}}`)).body).data.post.likes,
  ]
  return { ...app, state }
}

async function attacked(pageAddress: string, base: string): Promise<Attempts> {
  await using opened = await openPage(await sharedBrowser(), pageAddress)
  return await opened.page.evaluate<Attempts>(attack(base))
}

test('a page of another site neither reads nor writes under the open default, by no request', { skip }, async () => {
  await using duet = await startDuet()
  const [users, likes] = await duet.state()
  for (const base of [duet.url, duet.url.replace('127.0.0.1', 'localhost')]) {
    const { simple, ...attempts } = await attacked(`http://evil.test:${sitePort()}/`, base)
    assert.deepEqual(attempts, { read: 'failed: TypeError', write: 'failed: TypeError', socket: 'failed' })
    assert.match(simple, /^opaque/) // they were sent, and refused unseen
  }
  assert.deepEqual(await duet.state(), [users, likes])
  const refused = duet.logs.filter(({ msg, status }) => msg === 'answered' && status === 403)
  assert.ok(refused.length >= 2 * 5, `${refused.length} requests were refused`) // simple ones and sockets

  // The control: the same page, when its origin is allowed.
  await using allowing = await startDuet({ CORS_ORIGINS: `http://evil.test:${sitePort()}` })
  const { simple: _, ...attempts } = await attacked(`http://evil.test:${sitePort()}/`, allowing.url)
  assert.deepEqual(attempts, succeeded)
  assert.deepEqual(await allowing.state(), [users + 1, likes])
})

test('a page whose own name has come to mean this machine (DNS rebinding) gets nothing', { skip }, async () => {
  await using duet = await startDuet()
  const before = await duet.state()
  const rebound = `http://evil.test:${duet.port}`
  const { simple: _, ...attempts } = await attacked(rebound, rebound)
  assert.deepEqual(attempts, { read: '421 application/json; charset=utf-8', write: '421', socket: 'failed' })
  assert.deepEqual(await duet.state(), before)

  // The control: the same page, when its name is allowed.
  await using allowing = await startDuet({ ALLOWED_HOSTS: 'evil.test' })
  const own = `http://evil.test:${allowing.port}`
  const { simple: __, ...allowed } = await attacked(`${own}/health/live`, own)
  assert.deepEqual(allowed, succeeded)
})

test('a front end on another port of this machine works, though it is another site', { skip }, async () => {
  await using duet = await startDuet()
  for (const host of ['localhost', '127.0.0.1', 'app.localhost']) {
    const { simple: _, ...attempts } = await attacked(`http://${host}:${sitePort()}/`, duet.url)
    assert.deepEqual(attempts, succeeded, host)
  }
})
