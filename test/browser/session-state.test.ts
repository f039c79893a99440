import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import { FakeStorage, type PageOptions, StatePage, settled, stopTime } from './state-page.ts'

const ada = { id: 1, name: 'Ada', email: 'ada@example.com', role: 'admin' }
const grace = { id: 2, name: 'Grace', email: 'grace@example.com', role: 'member' }

let tokens = 0

function tokenOf({ id, role }: typeof ada): string {
  const iat = Math.floor(Date.now() / 1000)
  return `e30.${btoa(JSON.stringify({ sub: String(id), role, iat, exp: iat + 86_400, number: ++tokens }))}.signature`
}

const tokenIn = (headers: Headers) => headers.get('authorization')?.slice('Bearer '.length) ?? null

const answer = (status: number) => () => new Response(null, { status })
const [gone, refused, failed] = [answer(204), answer(401), answer(503)]
const outcome = (work: Promise<unknown>) => work.catch(({ kind, message }) => [kind, message].join(': '))
/** What needs no new answer. It fails if it waits for something all the same. */
const soon = <Value>(work: Promise<Value>) =>
  Promise.race([work, settled().then(() => assert.fail('It goes on waiting'))])

/** The console of a user who is signed in, or of nobody. The password of everybody is `secret`. */
class Visit extends StatePage {
  /** The tokens that the service no longer accepts. */
  readonly revoked = new Set<string | null>()
  state!: Awaited<ReturnType<StatePage['load']>>

  static async begin(as?: typeof ada, options: PageOptions = {}): Promise<Visit> {
    const visit = new Visit(options)
    if (as !== undefined) visit.local.setItem('duet-token', tokenOf(as))
    const byToken = (headers: Headers) => {
      const token = tokenIn(headers)
      if (token === null || visit.revoked.has(token)) return undefined
      return [ada, grace].find(({ id }) => id === Number(JSON.parse(atob(token.split('.')[1] ?? '')).sub))
    }
    visit.answers['GET /users/me'] = (_, headers) => byToken(headers) ?? refused()
    visit.answers['POST /tokens'] = (login: { email: string; password: string } | undefined, headers) => {
      const named = [ada, grace].find(({ email }) => email === login?.email && login.password === 'secret')
      const person = login === undefined ? byToken(headers) : named
      return person === undefined ? refused() : { token: tokenOf(person) }
    }
    visit.state = await visit.load('session', 'pages', 'names', 'drafts')
    await visit.state.resumeSession()
    return visit
  }

  /** Answers differently until the returned function is called. */
  instead(name: string, other: () => unknown): () => void {
    const { [name]: usual = other } = this.answers
    this.answers[name] = other
    return () => {
      this.answers[name] = usual
    }
  }

  /** The service ends the session, and the page learns it by its next request. */
  async end(): Promise<void> {
    this.revoked.add(this.local.getItem('duet-token'))
    await outcome(this.state.api.users.me())
    await settled()
  }

  /** Another tab signs in, or out. */
  elsewhere(person: typeof ada | undefined): Promise<void> {
    this.storeElsewhere('duet-token', person && tokenOf(person))
    return settled()
  }

  /** The user, the number of visits and the open question. */
  get shown(): readonly unknown[] {
    return [this.state.who.value, this.state.visits.value, this.state.question.value?.reason]
  }
}

describe('the session of the console', () => {
  it('asks once who signs in again after its end, and goes on with all that waited, as if nothing had happened', async () => {
    using page = await Visit.begin(ada)
    const { state } = page
    let tries = 0
    const work = () => {
      tries++
      return state.api.users.me()
    }
    page.revoked.add(page.local.getItem('duet-token'))
    const works = [state.withSession(work), state.withSession(work)]
    await settled()
    assert.deepEqual([page.shown, tries], [[ada, 1, 'ended'], 2])
    const wanted = state.askToSignIn('wanted')
    assert.equal(state.question.value?.reason, 'ended', 'the user has not chosen to sign in')
    const { value: first } = state.question
    await state.signIn(ada.email, 'secret')
    const names = (await soon(Promise.all(works))).map(({ name }) => name)
    assert.deepEqual([await soon(wanted), names], [true, ['Ada', 'Ada']])
    assert.deepEqual(page.shown, [ada, 1, undefined])

    await page.end() // a second time
    const declined = outcome(state.withSession(work))
    await settled()
    first?.answer(true) // a dialog that was answered already
    assert.deepEqual(page.shown, [ada, 1, 'ended'])
    state.question.value?.answer(false)
    assert.match(String(await soon(declined)), /^unauthenticated/)
    await settled()
    assert.deepEqual([page.shown, tries], [[undefined, 2, undefined], 5])
    assert.equal(page.local.getItem('duet-person'), null)
  })

  it('asks nobody to sign in again who was not signed in, after another error, or twice for one action', async () => {
    using page = await Visit.begin()
    const { state } = page
    const refuse = () => state.duet.signIn({ email: ada.email, password: 'wrong' })
    await outcome(state.withSession(refuse))
    await state.signIn(ada.email, 'secret')
    await outcome(state.withSession(() => state.duet.request('GET', '/nowhere')))
    assert.deepEqual(page.shown, [ada, 1, undefined])
    const twice = outcome(state.withSession(refuse))
    await settled()
    state.question.value?.answer(true)
    assert.match(String(await twice), /^unauthenticated/)
    assert.equal(state.question.value, undefined)
  })

  it('repeats for another user what it reads, but not what the former user wanted to do', async () => {
    using page = await Visit.begin(ada)
    const { withSession, api } = page.state
    const { readFeed, readerOf, feed } = await page.load('feed', 'comments')
    page.answers.Posts = page.answers.Post = (_, headers) =>
      page.revoked.has(tokenIn(headers)) ? refused() : { posts: [], post: null }
    page.revoked.add(page.local.getItem('duet-token'))
    for (const { run } of [readFeed, readerOf('7')]) run()
    const action = outcome(withSession(() => api.users.me()))
    const read = withSession(() => api.users.me(), { byAnyone: true })
    await settled()
    await page.elsewhere(grace)
    assert.match(String(await soon(action)), /^conflict: Somebody else has signed in/)
    assert.equal((await soon<typeof ada>(read)).name, 'Grace')
    assert.deepEqual([feed.value, readFeed.problem.value, readerOf('7').problem.value], [[], undefined, undefined])
  })

  it('is that of all tabs: who signs in or out elsewhere does so here, whichever answer with a name comes last', async () => {
    using page = await Visit.begin()
    const wanted = page.state.askToSignIn('wanted')
    const { 'GET /users/me': usual = assert.fail } = page.answers
    const sendLate = page.hold('GET /users/me')
    await page.elsewhere(grace)
    page.answers['GET /users/me'] = usual
    await page.elsewhere(ada)
    assert.deepEqual([page.shown, await wanted], [[ada, 1, undefined], true])
    await sendLate(grace)
    await page.elsewhere(ada) // its token is renewed
    assert.deepEqual([page.shown, page.asked.length], [[ada, 1, undefined], 2])
    assert.equal(JSON.parse(page.local.getItem('duet-person') ?? '').name, 'Ada')
    const sendLater = page.hold('GET /users/me')
    await page.elsewhere(grace)
    await page.elsewhere(undefined)
    await sendLater(grace)
    assert.deepEqual([page.shown, page.local.getItem('duet-person')], [[undefined, 2, undefined], null])
  })

  it('knows the user when the sign-in is done, and says what failed', async () => {
    using page = await Visit.begin()
    const { state } = page
    assert.match(String(await outcome(state.signIn(ada.email, 'wrong'))), /^badInput: The e-mail or the password/)
    const wanted = state.askToSignIn('wanted')
    let usual = page.instead('GET /users/me', failed)
    assert.match(String(await outcome(state.signIn(ada.email, 'secret'))), /^server/)
    assert.deepEqual(page.shown, [undefined, 0, 'wanted'], 'the dialog stays')
    usual()
    await state.signIn(ada.email, 'secret')
    assert.deepEqual([page.shown, await wanted], [[ada, 1, undefined], true])
    usual = page.instead('POST /tokens', failed)
    assert.match(String(await outcome(state.signIn(ada.email, 'secret'))), /^server/)
  })

  it('goes on after a new password, and asks for it if the new session cannot begin', async () => {
    using page = await Visit.begin(ada)
    const { state } = page
    const before = page.local.getItem('duet-token')
    const change = (present = 'secret') => outcome(state.changePassword(present, 'secret'))
    assert.equal(await change('wrong'), 'badInput: present is wrong')
    let usual = page.instead('POST /tokens', failed)
    assert.match(String(await change()), /^server/)
    usual()
    assert.deepEqual([page.local.getItem('duet-token'), page.asked.includes('PATCH /users/1')], [before, false])
    for (const learn of [() => page.end(), () => page.elsewhere(undefined)]) {
      page.answers['PATCH /users/1'] = async () => {
        await learn() // before the answer, by itself or by another tab that heard of it
        return ada
      }
      await change()
      assert.deepEqual([page.shown, state.duet.session?.userId], [[ada, 1, undefined], 1])
    }
    page.answers['PATCH /users/1'] = async () => {
      await page.end()
      usual = page.instead('POST /tokens', failed)
      return ada
    }
    assert.match(String(await change()), /^server/)
    assert.deepEqual(page.shown, [ada, 1, 'ended'])
    usual()
    await state.signIn(ada.email, 'secret')
    page.answers['DELETE /tokens'] = failed
    assert.match(String(await outcome(state.signOut(true))), /^server/)
    assert.deepEqual(page.shown, [ada, 1, undefined])
    await state.signOut(false)
    assert.deepEqual(page.shown, [undefined, 2, undefined], 'what the user wishes is shown again')
    assert.match(String(await change()), /^unauthenticated/)
  })

  it('ends with the account, without a question, and stays if the account does', async t => {
    stopTime(t)
    using page = await Visit.begin(ada)
    const { state } = page
    page.answers['DELETE /users/1'] = failed
    assert.match(String(await outcome(state.deleteAccount('secret'))), /^server/)
    assert.equal(await outcome(state.deleteAccount('wrong')), 'badInput: present is wrong')
    assert.deepEqual([page.shown, state.duet.session?.userId], [[ada, 1, undefined], 1])
    for (const [visits, learn] of [[2, () => {}] as const, [4, () => page.end()] as const]) {
      page.answers['DELETE /users/1'] = async () => {
        await learn()
        return gone()
      }
      await state.deleteAccount('secret')
      const before = page.asked.length
      mock.timers.tick(86_400_000)
      await settled()
      assert.equal(page.asked.length, before, 'no token is renewed')
      assert.deepEqual([page.shown, state.duet.session], [[undefined, visits, undefined], undefined])
      assert.equal(page.local.getItem('duet-person'), null)
      await state.signIn(ada.email, 'secret')
    }
    await page.end()
    assert.deepEqual(page.shown, [ada, 5, 'ended'])
  })

  it('is known at once after a reload, for ten minutes, with the role that the session has now', async t => {
    mock.timers.enable({ apis: ['Date'], now: Date.now() })
    t.after(() => mock.timers.reset())
    const local = new FakeStorage()
    local.setItem('duet-token', tokenOf(ada))
    /** Who is shown after a reload, and what was asked for that. */
    const reloaded = async (passedMs = 0, change: object | string = {}) => {
      mock.timers.tick(passedMs)
      const person = { ...JSON.parse(local.getItem('duet-person') ?? '{}'), ...(change as object) }
      local.setItem('duet-person', typeof change === 'string' ? change : JSON.stringify(person))
      using page = await Visit.begin(undefined, { local })
      assert.equal(page.state.resuming.value, false)
      return [page.state.who.value, ...page.asked]
    }
    const asking = [ada, 'GET /users/me']
    assert.deepEqual(await reloaded(), asking)
    assert.deepEqual(await reloaded(599_999, { role: 'member' }), [ada])
    assert.deepEqual(await reloaded(0, { name: 'Ada L.' }), [{ ...ada, name: 'Ada L.' }])
    assert.deepEqual(await reloaded(600_000), asking)
    assert.deepEqual(await reloaded(0, { until: Date.now() + 600_001 }), asking, 'the clock was set back')
    assert.deepEqual(await reloaded(0, { id: 2 }), asking)
    assert.deepEqual(await reloaded(0, 'nonsense'), asking)
    local.removeItem('duet-token')
    assert.deepEqual(await reloaded(), [undefined])
  })

  it('goes on without a name if that cannot be read or kept', async () => {
    const local = new FakeStorage()
    local.setItem('duet-token', tokenOf(ada))
    local.isFull = true
    using page = await Visit.begin(undefined, { local })
    assert.deepEqual(page.shown, [ada, 1, undefined])
    using next = new StatePage({ local })
    const state = await next.load('session')
    assert.equal(state.resuming.value, true)
    await state.resumeSession()
    assert.deepEqual([state.who.value, state.resuming.value], [undefined, false])
    next.answers['GET /users/me'] = next.answers['POST /tokens'] = refused
    await state.resumeSession()
    assert.deepEqual([state.duet.session, state.question.value], [undefined, undefined], 'nobody is asked')
  })

  it('leads back once to the page that sent the user to sign in, and else to the feed', async () => {
    using page = await Visit.begin(ada, { hash: '#/sign-in' })
    const back = 'http://127.0.0.1:4000/reference?q=users#/paths'
    page.state.comeBackTo(back)
    page.state.comeBack()
    assert.deepEqual([page.history.href, page.history.steps.length], [back, 1], 'the form is no step of the way back')
    page.state.comeBack()
    assert.deepEqual([page.history.hash, page.history.steps.length], ['#/feed', 1])
    await settled()
  })

  it('shows the new name of its user, but not that of somebody else, and keeps the role', async () => {
    using page = await Visit.begin(grace)
    page.state.userChanged({ ...ada, name: 'Ada L.' })
    assert.deepEqual(page.shown, [grace, 1, undefined])
    page.state.userChanged({ ...grace, name: 'G.', role: 'admin' })
    assert.deepEqual(page.shown, [{ ...grace, name: 'G.' }, 1, undefined])
    assert.equal(JSON.parse(page.local.getItem('duet-person') ?? '').name, 'G.')
  })

  it('takes with it what the user has read, and answers on their way, but not what the user has written', async () => {
    using page = await Visit.begin(ada)
    const { state } = page
    const kept = state.keptPage()
    const late = [Promise.withResolvers<unknown>(), Promise.withResolvers<unknown>()] as const
    const seen: unknown[] = []
    for (const { promise } of late) state.ofThisVisit(promise).then(seen.push.bind(seen), seen.push.bind(seen))
    kept.value = { items: [1] }
    state.nameKnown([{ id: 7, name: 'Seven' }])
    state.newPost().value = 'A draft'
    await state.signIn(ada.email, 'secret')
    assert.deepEqual([kept.value, state.names.value.size], [{ items: [1] }, 1], 'it is the same user')
    assert.equal(await state.ofThisVisit(Promise.resolve('mine')), 'mine')
    await assert.rejects(state.ofThisVisit(Promise.reject(new Error('mine'))), /mine/)
    await page.elsewhere(grace)
    late[0].resolve('of Ada')
    late[1].reject('of Ada')
    await settled()
    assert.deepEqual([kept.value, state.names.value.size, state.newPost().value, seen], [undefined, 0, undefined, []])
    await page.elsewhere(ada)
    assert.equal(state.newPost().value, 'A draft')
  })
})
