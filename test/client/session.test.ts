import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { keepIn, users } from '../../client/src/index.ts'
import { startTestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { createMember } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { waitUntil } from '../support/wait.ts'
import { connectTo, interceptedFetch, ManualClock, uncaughtDuring } from './support.ts'

const password = 'right password'
const hour = 3_600_000
const env = { LOGIN_LIMIT_MAX: '0', RATE_LIMIT_MAX: '0', TOKEN_TTL_SECONDS: '3600' }

/** A service and a client with the same time, which only the test moves. */
async function startWithOneClock(more: Readonly<Record<string, string>> = {}) {
  const serverClock = new TestClock()
  const app = await startTestApp({ ...env, ...more }, { clock: serverClock })
  const clock = new ManualClock(serverClock.now())
  const pass = (milliseconds: number) => {
    serverClock.pass(milliseconds)
    clock.pass(milliseconds)
  }
  const member = await createMember(app)
  const credentials = { email: member.email, password }
  return { app, clock, serverClock, pass, member, credentials, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() }
}

/** Holds the first such request without a body until the test releases it. `answer`: instead of that of the service. */
function holdOne(line: string, answer: Response | true) {
  const asked = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const intercepted: typeof fetch = async (input, init) => {
    const isHeld = !init?.body && `${init?.method} ${new URL(String(input)).pathname}` === line
    const response = isHeld && answer !== true ? answer : await fetch(input, init)
    if (isHeld) {
      asked.resolve()
      await held.promise
    }
    return response
  }
  return { fetch: intercepted, asked: asked.promise, release: held.resolve }
}

describe('A session of the client', () => {
  const app = shared(() => startTestApp(env))

  it('begins with the right password, and knows its user; the log contains neither the password nor the token', async () => {
    const member = await createMember(app)
    const kept: string[] = []
    const storage = { get: () => null, set: (token?: string) => void kept.push(token ?? '') }
    using client = connectTo(app, { storage })
    const wrong = client.duet.signIn({ email: member.email, password: 'wrong password' })
    await assert.rejects(wrong, { kind: 'unauthenticated', status: 401, message: 'Invalid email or password' })
    assert.equal(client.duet.session, undefined)
    const session = await client.duet.signIn({ email: member.email, password })
    assert.deepEqual([session.userId, session.role], [member.id, 'member'])
    assert.deepEqual(client.duet.session, session)
    assert.equal((await users(client.duet).me()).email, member.email)
    const [token = ''] = kept
    const log = JSON.stringify(client.requests)
    assert.ok(token.length > 100 && !log.includes(token) && !log.includes(password), log)
    assert.match(log, /\\"password\\":\\"…\\"/)
    assert.deepEqual(
      client.requests.map(({ authorized }) => authorized),
      [false, false, true],
    )
  })

  it('is that of all tabs with the same storage: a sign-in, a renewal and a sign-out in one of them are those of all', async () => {
    const member = await createMember(app)
    let kept: string | undefined
    const tabs: (() => void)[] = []
    const storage = (own: number) => ({
      get: () => kept,
      set: (token?: string) => {
        kept = token
        for (const [index, changed] of tabs.entries()) if (index !== own) changed()
      },
      watch: (changed: () => void) => void tabs.push(changed),
    })
    using first = connectTo(app, { storage: storage(0) })
    using second = connectTo(app, { storage: storage(1) })
    const changes: string[] = []
    second.duet.onSession((session, change) => changes.push(`${change} ${session?.userId}`))
    await first.duet.signIn({ email: member.email, password })
    assert.equal((await users(second.duet).me()).email, member.email)
    await first.duet.signIn({ email: member.email, password })
    await first.duet.signOut()
    assert.deepEqual(changes, [`signedIn ${member.id}`, `renewed ${member.id}`, 'signedOut undefined'])
    await assert.rejects(users(second.duet).me(), { kind: 'unauthenticated' })
  })

  it('is taken over from the storage if the service has ended the former one, even before the other tab is heard of', async () => {
    const member = await createMember(app)
    const kept: { token?: string | undefined } = {}
    const storage = { get: () => kept.token, set: (token?: string) => void Object.assign(kept, { token }) }
    using first = connectTo(app, { storage })
    await first.duet.signIn({ email: member.email, password })
    using second = connectTo(app, { storage })
    await first.duet.signOut({ everywhere: true })
    await first.duet.signIn({ email: member.email, password })
    assert.equal((await users(second.duet).me()).email, member.email)
    assert.equal((await users(first.duet).me()).email, member.email)
  })

  it('is renewed before each expiry, and ends when the service ends it', async () => {
    await using stage = await startWithOneClock({ SESSION_TTL_SECONDS: String(4 * 3600) })
    const { app, clock, credentials, pass } = stage
    const over: string[] = []
    using client = connectTo(app, { clock, onSignedOut: why => over.push(why) })
    const { duet, lines } = client
    const begun = (await duet.signIn(credentials)).expiresAt
    for (let renewals = 1; renewals <= 4; renewals++) {
      pass((2 * hour) / 3)
      await waitUntil(() => lines().filter(line => line === 'POST /tokens 200').length === renewals + 1)
      await waitUntil(() => (duet.session?.expiresAt ?? 0) > begun + (renewals * hour) / 2)
    }
    assert.equal((await users(duet).me()).id, stage.member.id)
    assert.ok(!lines().some(line => line.endsWith('401')), lines().join())
    pass(2 * hour)
    await waitUntil(() => over.length > 0)
    assert.deepEqual([over, duet.session], [['ended'], undefined])
  })

  it('is renewed once for all requests that need it, and requests do not wait while the token is valid', async () => {
    await using stage = await startWithOneClock()
    const { app, clock, credentials, serverClock } = stage
    let answer = () => {}
    const renewed = new Promise<void>(resolve => {
      answer = resolve
    })
    const slow = interceptedFetch(
      ({ path }) => (path === '/tokens' ? renewed.then(() => undefined) : undefined) as never,
    )
    using client = connectTo(app, {
      clock,
      fetch: (input, init) => (init?.body ? fetch(input, init) : slow(input, init)),
    })
    const { expiresAt } = await client.duet.signIn(credentials)
    clock.sleep(hour - 2000)
    serverClock.pass(hour - 2000)
    await Promise.all(Array.from({ length: 5 }, () => users(client.duet).me()))
    assert.equal(client.lines().filter(line => line === 'GET /users/me 200').length, 5)
    assert.equal(client.duet.session?.expiresAt, expiresAt)
    answer()
    await waitUntil(() => client.duet.session?.expiresAt !== expiresAt)
    assert.equal(client.lines().filter(line => line === 'POST /tokens 200').length, 2)
  })

  it('ends if it expired while the machine was asleep: no request is sent as another user', async () => {
    await using stage = await startWithOneClock()
    const { app, clock, credentials, serverClock } = stage
    const over: string[] = []
    using client = connectTo(app, { clock, onSignedOut: why => over.push(why) })
    await client.duet.signIn(credentials)
    clock.sleep(2 * hour)
    serverClock.pass(2 * hour)
    await assert.rejects(users(client.duet).create({ name: 'Nobody', email: 'n@example.com' }), {
      kind: 'unauthenticated',
    })
    assert.deepEqual(over, ['ended'])
    assert.deepEqual(client.lines().slice(1), ['POST /tokens 401'])
    assert.ok((await users(client.duet).list().toArray()).length > 0, 'from then on the caller is anonymous')
  })

  it('survives a renewal that gets no answer', async () => {
    await using stage = await startWithOneClock()
    const { app, clock, credentials, pass } = stage
    let isDown = false
    const down = interceptedFetch(() => {
      if (isDown) throw new TypeError('no network')
      return undefined
    })
    using client = connectTo(app, { clock, fetch: down })
    const { expiresAt } = await client.duet.signIn(credentials)
    isDown = true
    pass((2 * hour) / 3)
    await waitUntil(() => client.lines().includes('POST /tokens undefined'))
    assert.equal(client.duet.session?.expiresAt, expiresAt)
    isDown = false
    await waitUntil(() => clock.due.length === 1)
    pass(60_000)
    await waitUntil(() => client.duet.session?.expiresAt !== expiresAt)
  })

  it('does not depend on the clock of its machine', async () => {
    const member = await createMember(app)
    for (const wrong of [-24 * hour, 24 * hour]) {
      const clock = new ManualClock(Date.now() + wrong)
      using client = connectTo(app, { clock })
      const { expiresAt } = await client.duet.signIn({ email: member.email, password })
      assert.equal(expiresAt, clock.now() + hour - 1000)
      await users(client.duet).me()
      assert.deepEqual(client.lines(), ['POST /tokens 200', 'GET /users/me 200'])
    }
  })

  it('ends when its tokens are revoked, by another device of the user or by this one', async () => {
    const { email } = await createMember(app)
    const over: string[] = []
    using here = connectTo(app, { onSignedOut: why => over.push(`here: ${why}`) })
    using there = connectTo(app, { onSignedOut: why => over.push(`there: ${why}`) })
    await Promise.all([here, there].map(({ duet }) => duet.signIn({ email, password })))
    await here.duet.signOut({ everywhere: true })
    assert.deepEqual(here.lines().at(-1), 'DELETE /tokens 204')
    await assert.rejects(users(there.duet).me(), { kind: 'unauthenticated', status: 401 })
    assert.deepEqual([over, there.duet.session], [['here: signOut', 'there: ended'], undefined])
  })

  it('continues if only one path refuses its token, and does not replace the token that the caller has for it', async () => {
    await using app = await startTestApp({ ...env, METRICS_TOKEN: 'a-token-of-somebody-else' })
    const { email } = await createMember(app)
    using client = connectTo(app)
    await client.duet.signIn({ email, password })
    await assert.rejects(client.duet.request('GET', '/metrics'), { kind: 'unauthenticated' })
    assert.notEqual(client.duet.session, undefined)
    await users(client.duet).me()
    const headers = { Authorization: 'Bearer a-token-of-somebody-else' }
    assert.equal((await client.duet.request('GET', '/metrics', { headers })).status, 200)
    assert.ok(!JSON.stringify(client.requests).includes('somebody-else'))
  })

  it('repeats a refused request with its renewed token, and never with the token of another user', async () => {
    const [ada, grace] = [await createMember(app), await createMember(app)]
    let meanwhile: (() => Promise<unknown>) | undefined
    const fetch = interceptedFetch(async ({ path }) => {
      const act = path === '/users/me' ? meanwhile : undefined
      meanwhile = undefined
      await act?.()
      return (act && Response.json({ error: 'Invalid token' }, { status: 401 })) as Response
    })
    using client = connectTo(app, { fetch })
    await client.duet.signIn({ email: ada.email, password })
    meanwhile = async () => {}
    assert.equal((await users(client.duet).me()).id, ada.id)
    assert.deepEqual(client.lines().slice(1), ['GET /users/me 401', 'POST /tokens 200', 'GET /users/me 200'])
    meanwhile = () => client.duet.signIn({ email: grace.email, password })
    await assert.rejects(users(client.duet).me(), { kind: 'unauthenticated' })
    assert.equal(client.duet.session?.userId, grace.id)
  })

  it('does not end, and no call fails, if the token cannot be stored', async () => {
    const { email, id } = await createMember(app)
    const noRoom = new Error('no room')
    const full = {
      get: () => null,
      set() {
        throw noRoom
      },
    }
    const uncaught = await uncaughtDuring(async () => {
      using client = connectTo(app, { storage: full })
      await client.duet.signIn({ email, password })
      assert.equal((await users(client.duet).me()).id, id)
    })
    assert.deepEqual(uncaught, [noRoom])
  })

  it('is stored where the caller configures, and is found there at the next visit', async () => {
    const { email, id } = await createMember(app)
    const items = new Map<string, string>()
    const local = {
      getItem: (name: string) => items.get(name) ?? null,
      setItem: (name: string, value: string) => void items.set(name, value),
      removeItem: (name: string) => void items.delete(name),
    }
    using first = connectTo(app, { storage: keepIn(local) })
    await first.duet.signIn({ email, password })
    using next = connectTo(app, { storage: keepIn(local) })
    assert.equal(next.duet.session?.userId, id)
    assert.equal((await users(next.duet).me()).id, id)
    await next.duet.signOut()
    assert.deepEqual([...items], [])

    const page = globalThis as { addEventListener?: unknown }
    let heard: (event: object) => void = () => {}
    page.addEventListener = (_name: string, listen: typeof heard) => {
      heard = listen
    }
    using tab = connectTo(app, { storage: keepIn(local) })
    Reflect.deleteProperty(page, 'addEventListener')
    await tab.duet.signIn({ email, password })
    items.clear()
    heard({ storageArea: {}, key: null })
    heard({ storageArea: local, key: 'other' })
    assert.equal(tab.duet.session?.userId, id)
    heard({ storageArea: local, key: null }) // another tab has deleted all of it
    assert.equal(tab.duet.session, undefined)
    items.set('duet-token', 'not.a.token')
    using broken = connectTo(app, { storage: keepIn(local) })
    assert.equal(broken.duet.session, undefined)
  })

  it('does not start again by a renewal that is answered after the user has signed out', async () => {
    await using stage = await startWithOneClock()
    const late = holdOne('POST /tokens', true)
    using client = connectTo(stage.app, { clock: stage.clock, fetch: late.fetch })
    await client.duet.signIn(stage.credentials)
    stage.pass((2 * hour) / 3)
    await late.asked
    await client.duet.signOut()
    late.release()
    await waitUntil(() => client.lines().length === 2)
    assert.equal(client.duet.session, undefined)
  })

  it('is not ended by a late answer to the user before: of a renewal that is refused, or of signing out everywhere', async () => {
    for (const [line, status] of [
      ['POST /tokens', 401],
      ['DELETE /tokens', 401],
      ['DELETE /tokens', 204],
    ] as const) {
      await using stage = await startWithOneClock()
      const next = await createMember(stage.app)
      const answer = new Response(status === 204 ? null : '{"error":"Invalid or expired token"}', { status })
      const late = holdOne(line, answer)
      using client = connectTo(stage.app, { clock: stage.clock, fetch: late.fetch })
      await client.duet.signIn(stage.credentials)
      const leaving = line.startsWith('DELETE') ? client.duet.signOut({ everywhere: true }).catch(() => {}) : undefined
      if (leaving === undefined) stage.pass((2 * hour) / 3)
      await late.asked
      await client.duet.signIn({ email: next.email, password })
      late.release()
      await leaving
      await waitUntil(() => client.lines().includes(`${line} ${status}`))
      assert.equal((await users(client.duet).me()).id, next.id, `${line} ${status}`)
    }
  })

  it('notifies its listeners of each change, and not after they are removed', async () => {
    const { email } = await createMember(app)
    using client = connectTo(app)
    const changes: string[] = []
    const stop = client.duet.onSession((session, change) => changes.push(`${change} ${session !== undefined}`))
    await client.duet.signIn({ email, password })
    await client.duet.signOut()
    stop()
    await client.duet.signIn({ email, password })
    assert.deepEqual(changes, ['signedIn true', 'signedOut false'])
  })
})
