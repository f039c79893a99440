import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, it } from 'node:test'
import { systemClock } from '../../client/src/clock.ts'
import { type Clock, etag, keepIn, users } from '../../client/src/index.ts'
import { startTestApp } from '../support/app.ts'
import { createMember } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { waitUntil, within } from '../support/wait.ts'
import { connectTo, ManualClock, neverAnswers, noNetwork, TabStorage, tokenFor, uncaughtDuring } from './support.ts'

const password = 'right password'
const hour = 3_600_000
const env = { LOGIN_LIMIT_MAX: '0', RATE_LIMIT_MAX: '0' }

describe('A session of the client', () => {
  const app = shared(() => startTestApp(env))

  it('begins with the right password, and knows its user; the log contains neither the password nor the token', async () => {
    const member = await createMember(app)
    const kept: string[] = []
    const storage = { get: () => null, set: (token?: string) => void kept.push(token ?? '') }
    using client = connectTo(app, { storage })
    const form = { email: member.email, password: 'wrong password', repeated: password }
    const wrong = client.duet.signIn(form) // only the email and the password are sent
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
    const authorized = client.requests.map(each => each.authorized)
    assert.deepEqual(authorized, [false, false, true])
  })

  it('is stored where the caller configures, and is found there at the next visit', async () => {
    const { email, id } = await createMember(app)
    const items = new Map<string, string>()
    const local = {
      getItem: (name: string) => items.get(name) ?? null,
      setItem: (name: string, value: string) => void items.set(name, value),
      removeItem: (name: string) => void items.delete(name),
    }
    for (const [name, ...given] of [['duet-token'], ['named', 'named']]) {
      using first = connectTo(app, { storage: keepIn(local, ...given) })
      await first.duet.signIn({ email, password })
      using next = connectTo(app, { storage: keepIn(local, ...given) })
      assert.deepEqual([[...items.keys()], next.duet.session?.userId], [[name], id])
      assert.equal((await users(next.duet).me()).id, id)
      await next.duet.signOut()
      assert.deepEqual([...items], [])
    }

    const page = globalThis as { addEventListener?: unknown }
    let heard: (event: object) => void = () => {}
    page.addEventListener = (_name: string, listen: typeof heard) => {
      heard = listen
    }
    using tab = connectTo(app, { storage: keepIn(local, 'named') })
    Reflect.deleteProperty(page, 'addEventListener')
    await tab.duet.signIn({ email, password })
    const token = items.get('named') ?? assert.fail()
    items.clear()
    heard({ storageArea: {}, key: null })
    heard({ storageArea: local, key: 'duet-token' })
    assert.equal(tab.duet.session?.userId, id)
    heard({ storageArea: local, key: null }) // another tab has deleted all of it
    assert.equal(tab.duet.session, undefined)
    items.set('named', token)
    heard({ storageArea: local, key: 'named' }) // it has signed in
    assert.equal((await users(tab.duet).me()).id, id)
    for (const text of ['not.a.token', `x.${btoa('{"sub":"1"}')}.x`]) {
      items.set('named', text)
      using broken = connectTo(app, { storage: keepIn(local, 'named') })
      assert.equal(broken.duet.session, undefined, text)
    }
  })
})

type Answer = Response | Promise<Response>

/** A client without a network, but with a stored token. The test plays the service, and the other tab. */
function alone<Time extends Clock = ManualClock>(
  stored: string | undefined,
  answer: (line: string, token: string, init?: RequestInit) => Answer,
  clock = new ManualClock(0) as Clock as Time,
) {
  const tab = new TabStorage(stored)
  const changes: string[] = []
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const token = new Headers(init?.headers).get('authorization')?.replace('Bearer ', '')
    return await answer(`${init?.method} ${new URL(String(input)).pathname}`, token ?? '', init)
  }
  const onSignedOut = (why: string) => changes.push(why)
  const client = connectTo({ url: 'http://duet.test' }, { clock, storage: tab, fetch, onSignedOut })
  client.duet.onSession((session, change) => changes.push(`${change} ${session?.userId}`))
  return { client, duet: client.duet, clock, tab, tell: (token?: string) => tab.tell(token), changes }
}

const refused = () => Response.json({ error: 'Invalid or expired token' }, { status: 401 })
/** A token is renewed after two thirds of its time. */
const renewalOf = (seconds: number) => (seconds * 2000) / 3

describe('A stored session of the client', () => {
  it('does not hold a call that its caller aborts: while the token is renewed, or when the call is repeated', async () => {
    for (const [held, now] of [
      ['POST /tokens', 0],
      ['POST /tokens', 2 * hour],
      ['GET /users/me', 0],
    ] as const) {
      const stop = new AbortController()
      const reason = new Error(`no longer needed: ${held} at ${now}`)
      let isRenewed = now > 0
      const answer = (line: string, _token: string, init?: RequestInit) => {
        if (line === 'GET /users/me' && !isRenewed) return refused()
        isRenewed = true
        if (line !== held) return Response.json({ token: tokenFor(1, 1) })
        setImmediate(() => stop.abort(reason))
        return neverAnswers('', init)
      }
      const { duet } = alone(tokenFor(1), answer, new ManualClock(now))
      const call = () =>
        users(duet)
          .me({ signal: stop.signal })
          .catch(error => error)
      assert.equal(await within(call(), `the end of a call: ${reason.message}`), reason)
      assert.deepEqual(getEventListeners(stop.signal, 'abort'), [])
      assert.equal(await Promise.race([call(), new Promise(setImmediate)]), reason, 'nor one that was aborted before')
    }
  })

  it('does not end, and no call fails, if the token cannot be stored', async () => {
    const { duet, tab } = alone(undefined, () => Response.json({ token: tokenFor(1), id: 1 }))
    const noRoom = new Error('no room')
    tab.set = () => assert.fail(noRoom)
    const uncaught = await uncaughtDuring(async () => {
      await duet.signIn({ email: 'a@example.com', password })
      assert.equal((await users(duet).me()).id, 1)
    })
    assert.deepEqual(uncaught, [noRoom])
  })

  it('is renewed in time: when it is found, and when it comes from another tab; but not after its end', () => {
    const { client, duet, clock, tell, changes } = alone(tokenFor(1), () => assert.fail())
    const session = { userId: 1, role: 'member', expiresAt: hour }
    assert.deepEqual([duet.session, clock.due], [session, [renewalOf(3600)]])
    assert.equal(duet.session, duet.session, 'the same object, as views need it')
    clock.sleep(60_000)
    tell(tokenFor(2, 0, 7200))
    assert.deepEqual(clock.due, [renewalOf(7200) - 60_000])
    tell(tokenFor(2, 0, 9000))
    tell(tokenFor(2, 0, 9000)) // nothing has changed
    assert.deepEqual(clock.due, [renewalOf(9000) - 60_000])
    tell(undefined)
    assert.deepEqual(clock.due, [])
    tell(tokenFor(2, 0, 9000))
    duet.close()
    tell(tokenFor(1))
    assert.deepEqual([clock.due, duet.session?.userId, client.requests], [[], 2, []])
    const told = ['signedIn 2', 'renewed 2', 'signOut', 'signedOut undefined', 'signedIn 2']
    assert.deepEqual(changes, told)
  })

  it('is renewed in time also if a timer cannot wait so long, and if its token has less than a second left', async () => {
    const sixtyDays = 60 * 24 * 3600
    const role = '>>>>>>??????'
    const long = alone(tokenFor(1, 0, sixtyDays, role), () => Response.json({ token: tokenFor(1, 0, 0) }))
    assert.equal(long.duet.session?.role, role, 'also with several - and _ in the token')
    assert.deepEqual(long.clock.due, [2_000_000_000])
    long.clock.pass(2_000_000_000)
    assert.deepEqual([long.clock.due, long.client.requests], [[renewalOf(sixtyDays) - 2_000_000_000], []])
    long.clock.pass(2_000_000_000)
    await waitUntil(() => long.changes.length > 0)
    assert.deepEqual([long.changes, long.clock.due.map(Math.round)], [['renewed 1'], [167]])
    assert.equal(long.duet.session?.role, 'member', 'the role of the new token')
    const late = alone(tokenFor(1), () => assert.fail(), new ManualClock(2 * hour))
    assert.deepEqual([late.clock.due, late.duet.session?.userId], [[0], 1])
    assert.equal(alone(tokenFor(1, 0, -1), () => assert.fail()).duet.session, undefined)
  })

  for (const failure of ['no answer', 503]) {
    it(`is renewed a little later after ${failure}, and not at all if the connection is closed meanwhile`, async () => {
      const asked: string[] = []
      const { duet, clock, tab, changes } = alone(tokenFor(1), line => {
        if (asked.push(line) !== 2 && typeof failure === 'string') return noNetwork()
        return asked.length === 2 ? Response.json({ token: tokenFor(1, 0, 4500) }) : new Response('', { status: 503 })
      })
      clock.sleep(2 * hour) // the timer is late
      clock.pass(renewalOf(3600))
      await waitUntil(() => asked.length === 1)
      await new Promise(setImmediate)
      assert.ok((clock.due[0] ?? 0) >= 5000 && (clock.due[0] ?? 0) <= 15_000, String(clock.due))
      assert.deepEqual([tab.stored, changes], [tokenFor(1), []])
      clock.pass(15_000)
      await new Promise(setImmediate)
      assert.deepEqual([tab.stored, changes, clock.due], [tokenFor(1, 0, 4500), ['renewed 1'], [renewalOf(4500)]])
      clock.pass(renewalOf(4500))
      duet.close()
      await waitUntil(() => asked.length === 3)
      await new Promise(setImmediate)
      assert.deepEqual(clock.due, [])
    })
  }

  it('ends in the storage, too, when the service refuses it; unless another tab has stored that of another user', async () => {
    const first = alone(tokenFor(1), refused)
    await assert.rejects(users(first.duet).me(), { kind: 'unauthenticated' })
    assert.deepEqual([first.tab.stored, first.changes], [undefined, ['ended', 'ended undefined']])
    const emptied = alone(tokenFor(1), refused)
    emptied.tab.stored = undefined
    await assert.rejects(users(emptied.duet).me(), { kind: 'unauthenticated' })
    assert.deepEqual(emptied.changes, ['ended', 'ended undefined'])
    const second = alone(tokenFor(1), refused)
    second.tab.stored = tokenFor(2)
    second.clock.sleep(60_000)
    await assert.rejects(users(second.duet).me(), { kind: 'unauthenticated' })
    assert.deepEqual([second.tab.stored, second.changes], [tokenFor(2), ['signedIn 2']])
    assert.deepEqual(second.clock.due, [renewalOf(3600) - 60_000])
    assert.deepEqual(second.client.lines(), ['GET /users/me 401', 'POST /tokens 401'])
    const same = alone(tokenFor(1), (line, token) => {
      if (line === 'POST /tokens') same.tab.stored = tokenFor(1, 1) // another tab is quicker
      return token === tokenFor(1) ? refused() : Response.json({ id: 1 })
    })
    await users(same.duet).me()
    assert.deepEqual(same.changes, ['renewed 1'], 'a newer token of the same user')
  })

  it('is ended everywhere only by the service: after no answer or a strange one it stays, and the next attempt ends it', async () => {
    const answers = [
      noNetwork,
      () => new Response('<html>', { headers: { 'content-type': 'text/html' } }),
      () => {
        tell(tokenFor(1, 3601)) // renewed by another tab meanwhile
        return new Response(null, { status: 204 })
      },
    ]
    const { client, duet, clock, tab, tell, changes } = alone(tokenFor(1), line =>
      line === 'POST /tokens' ? Response.json({ token: tokenFor(1, 3600) }) : (answers.shift() ?? refused)(),
    )
    clock.sleep(hour) // it has expired, so it is renewed first
    for (const kind of ['offline', 'server']) await assert.rejects(duet.signOut({ everywhere: true }), { kind })
    assert.deepEqual([duet.session?.userId, tab.stored], [1, tokenFor(1, 3600)])
    await duet.signOut({ everywhere: true })
    await duet.signOut({ everywhere: true }) // there is nothing to end
    const sent = ['POST /tokens 200', 'DELETE /tokens undefined', 'DELETE /tokens 200', 'DELETE /tokens 204']
    assert.deepEqual([client.lines(), tab.stored], [sent, undefined])
    assert.deepEqual(changes, ['renewed 1', 'renewed 1', 'signOut', 'signedOut undefined'])

    const over = alone(tokenFor(1), refused)
    await assert.rejects(over.duet.signOut({ everywhere: true }), { kind: 'unauthenticated' })
    assert.deepEqual([over.tab.stored, over.changes], [undefined, ['ended', 'ended undefined']])
  })

  it('is that of the former user after a failed attempt to sign in, and of the newest after a late renewal', async () => {
    for (const isLost of [false, true]) {
      const answers = [refused, () => Response.json({}), () => Response.json({ token: tokenFor(1, 0, 6000) })]
      const late = Promise.withResolvers<Response>()
      const used: string[] = []
      const { client, duet, clock, tab } = alone(tokenFor(1), (line, token) => {
        used.push(token)
        if (line !== 'POST /tokens') return Response.json({ id: 1 })
        return token === '' ? (answers.shift() ?? refused)() : late.promise
      })
      const signIn = () => duet.signIn({ email: 'a@example.com', password })
      await assert.rejects(signIn(), { kind: 'unauthenticated' })
      await assert.rejects(signIn(), { kind: 'server', message: 'The service gave no valid token.' })
      assert.deepEqual([duet.session?.userId, tab.stored], [1, tokenFor(1)])
      clock.pass(renewalOf(3600))
      await signIn()
      if (isLost) late.reject(new TypeError('no network'))
      else late.resolve(Response.json({ token: tokenFor(1, 0, 4500) }))
      await waitUntil(() => client.requests.length === 4)
      await users(duet).me()
      assert.deepEqual([used.at(-1), tab.stored], [tokenFor(1, 0, 6000), tokenFor(1, 0, 6000)])
    }
  })

  it('is renewed once after refusals that come one after the other, and then has no more attempts', async () => {
    const late = Promise.withResolvers<Response>()
    const answers = [refused, () => late.promise]
    const { client, duet } = alone(tokenFor(1), (line, token) => {
      if (line === 'POST /tokens') return Response.json({ token: tokenFor(1, 0, 4500) })
      return token === tokenFor(1) ? (answers.shift() ?? refused)() : Response.json({ id: 1 })
    })
    const reading = [users(duet).me(), users(duet).me()]
    await reading[0]
    late.resolve(refused())
    await reading[1]
    assert.equal(client.lines().filter(line => line.startsWith('POST /tokens')).length, 1)

    let sent = 0
    const never = alone(tokenFor(1), line => {
      assert.ok(++sent <= 3) // else it would go on for ever
      return line === 'POST /tokens' ? Response.json({ token: tokenFor(1, sent) }) : refused()
    })
    const user = { id: 1, name: 'Ada', email: 'ada@example.com', [etag]: '"v"' }
    await assert.rejects(users(never.duet).update(user, { age: 40 }), { kind: 'unauthenticated' })
    assert.deepEqual(never.client.lines(), ['PATCH /users/1 401', 'POST /tokens 200', 'PATCH /users/1 401'])
    const [first, , repeated] = never.client.requests
    assert.deepEqual([repeated?.body, repeated?.headers], ['{"age":40}', first?.headers])
    assert.equal(repeated?.headers['if-match'], '"v"')
    assert.equal(never.duet.session?.userId, 1, 'only this path refuses its token')

    const other = alone(tokenFor(1), () => {
      other.tell(tokenFor(2))
      return refused()
    })
    await assert.rejects(users(other.duet).me(), { kind: 'unauthenticated' })
    assert.deepEqual([other.client.lines(), other.duet.session?.userId], [['GET /users/me 401'], 2])

    const strange = alone(tokenFor(1), (line, token) => {
      if (line === 'POST /tokens') return Response.json({ token: tokenFor(1, 1) })
      return token === tokenFor(1) ? refused() : new Response('<html>')
    })
    await assert.rejects(strange.duet.request('GET', '/a', { expect: 'json', attempt: 3 }), { kind: 'server' })
    const attempts = strange.client.requests.map(({ attempt }) => attempt)
    assert.deepEqual(attempts, [3, 1, 3])

    const lost = alone(tokenFor(1), line => {
      assert.equal(line, 'GET /users/me') // else there is no network
      return refused()
    })
    await assert.rejects(users(lost.duet).me(), { kind: 'unauthenticated' })
    const withOld = ['GET /users/me 401', 'POST /tokens undefined']
    assert.deepEqual(lost.client.lines(), withOld, 'not again with the old token')
    assert.equal(lost.duet.session?.userId, 1)
  })

  it('is not ended by a late answer to the user before, and does not start again by one after it has ended', async () => {
    for (const [line, status, isLeft, isKept] of [
      ['POST /tokens', 401, false, true],
      ['POST /tokens', 401, false, false],
      ['POST /tokens', 200, true, true],
      ['DELETE /tokens', 401, false, true],
      ['DELETE /tokens', 204, false, true],
    ] as const) {
      const late = Promise.withResolvers<Response>()
      const { client, duet, clock, tab } = alone(tokenFor(1), (_line, token) =>
        token === tokenFor(1) ? late.promise : Response.json({ token: tokenFor(2) }),
      )
      const leaving = line === 'DELETE /tokens' ? duet.signOut({ everywhere: true }).catch(() => {}) : undefined
      if (leaving === undefined) clock.pass(renewalOf(3600))
      if (isLeft) await duet.signOut()
      else await duet.signIn({ email: 'grace@example.com', password })
      if (!isKept) tab.get = () => undefined // as without a storage
      const answer = status === 200 ? { token: tokenFor(1, 0, 4500) } : { error: 'Invalid or expired token' }
      late.resolve(status === 204 ? new Response(null, { status }) : Response.json(answer, { status }))
      await leaving
      await waitUntil(() => client.lines().includes(`${line} ${status}`))
      await new Promise(setImmediate)
      const expected = isLeft ? [undefined, undefined] : [2, tokenFor(2)]
      assert.deepEqual([duet.session?.userId, tab.stored], expected, `${line} ${status} ${isKept}`)
    }
  })

  it('is renewed once for all requests that need it, and they do not wait while the token is valid', async () => {
    const late = Promise.withResolvers<Response>()
    const used: string[] = []
    const { client, duet, clock } = alone(tokenFor(1), (line, token) => {
      if (line === 'POST /tokens') return late.promise
      used.push(token)
      return Response.json({ id: 1 })
    })
    const readTwice = () => Promise.all([users(duet).me(), users(duet).me()])
    clock.sleep(hour - 2000)
    await within(readTwice(), 'requests with a valid token')
    clock.sleep(2000)
    const waiting = readTwice()
    late.resolve(Response.json({ token: tokenFor(1, 3600) }))
    await waiting
    assert.deepEqual(used, [tokenFor(1), tokenFor(1), tokenFor(1, 3600), tokenFor(1, 3600)])
    assert.equal(client.lines().filter(line => line === 'POST /tokens 200').length, 1)
  })

  it('sends no request of its user as nobody or as the next one, if it ends while it is renewed', async () => {
    for (const next of [undefined, tokenFor(2)]) {
      const late = Promise.withResolvers<Response>()
      const { client, duet, clock, tell } = alone(tokenFor(1), () => late.promise)
      clock.sleep(2 * hour)
      const writing = users(duet).update(1, { age: 40 })
      if (next !== undefined) tell(next)
      late.resolve(next === undefined ? refused() : Response.json({ token: tokenFor(1, 3600) }))
      await assert.rejects(writing, { kind: 'unauthenticated', message: 'The session has ended. Sign in again.' })
      assert.deepEqual([client.requests.length, duet.session?.userId], [1, next && 2])
    }
  })

  it('lasts from the arrival of its token, however long the answer takes and whatever time its machine has', async () => {
    for (const issuedAt of [-86_400, 0, 86_400]) {
      const { duet, clock } = alone(undefined, () => {
        clock.sleep(20_000)
        return Response.json({ token: tokenFor(1, issuedAt) })
      })
      assert.equal((await duet.signIn({ email: 'ada@example.com', password })).expiresAt, 20_000 + hour)
      clock.pass(renewalOf(3600))
      await waitUntil(() => duet.session?.expiresAt !== 20_000 + hour)
      assert.equal(duet.session?.expiresAt, 40_000 + renewalOf(3600) + hour)
    }
  })

  it('tells each listener, also if another one throws, and a new one only of later changes', async () => {
    const { duet, tell } = alone(undefined, () => assert.fail())
    const fault = new Error('a fault of the application')
    const heard: string[] = []
    const stop = duet.onSession(() => assert.fail(fault))
    duet.onSession((_session, change) => {
      heard.push(change)
      if (change === 'signedIn') duet.onSession((_, later) => heard.push(`later ${later}`))
    })
    const uncaught = await uncaughtDuring(async () => {
      tell(tokenFor(1))
      stop()
      tell(undefined)
    })
    assert.deepEqual(heard, ['signedIn', 'signedOut', 'later signedOut'])
    assert.deepEqual(uncaught, [fault], 'a removed one hears nothing more')
  })

  it('is stored before its listeners hear of it, so it does not come back after one of them ends it', async () => {
    const { duet, tab } = alone(undefined, () => Response.json({ token: tokenFor(1) }))
    const stored: unknown[] = []
    duet.onSession(session => {
      stored.push(tab.stored)
      if (session !== undefined) void duet.signOut()
    })
    const session = await duet.signIn({ email: 'ada@example.com', password })
    assert.deepEqual(session, { userId: 1, role: 'member', expiresAt: hour })
    assert.deepEqual([stored, tab.stored], [[tokenFor(1), undefined], undefined])
  })

  it('leaves no timer behind that keeps a process alive', async t => {
    const { mock: started } = t.mock.method(globalThis, 'setTimeout')
    const { mock: cleared } = t.mock.method(globalThis, 'clearTimeout')
    const timers = () => started.calls.map(({ result }) => result)
    const ended = () => cleared.calls.map(({ arguments: [timer] }) => timer)
    const answer = () => Response.json({ id: 1, isAwaited: timers()[1]?.hasRef() })
    using client = alone(tokenFor(1, Date.now() / 1000), answer, systemClock).client
    const read = await users(client.duet).me()
    assert.deepEqual(read, { id: 1, isAwaited: true }, 'while a request is under way, it does')
    assert.deepEqual([timers()[0]?.hasRef(), ended()], [false, timers().slice(1)])
    client.duet.close()
    assert.ok(ended().includes(timers()[0]))
  })
})
