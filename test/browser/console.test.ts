import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import type { Route } from 'playwright-core'
import { browserMissing } from '../support/browser.ts'
import { read } from '../support/graphql.ts'
import { logIn } from '../support/rest.ts'
import { waitUntil } from '../support/wait.ts'
import { ada, change, grace, holdOne, ownContext, password, startConsole } from './console-page.ts'

const metricsToken = 'for-the-metrics-of-these-tests'

describe('the console', { skip: browserMissing }, () => {
  const limit = { RATE_LIMIT_PATHS: '/users', RATE_LIMIT_MAX: '1000' }
  const currency = { CURRENCY: 'EUR', CURRENCY_DIGITS: '2' }
  const env = { ACCESS_POLICY: 'enforced', METRICS_TOKEN: metricsToken, ...limit, ...currency }
  const { app, open } = startConsole(env)
  const write = async (title: string) =>
    change(app, 'write', { title, content: 'Some text.' }, await logIn(app, grace, password))
  const comment = async (id: string, text: string, as = grace) =>
    change(app, 'comment', { id, text }, await logIn(app, as, password))

  it('shows the feed to everyone, and after the demo login the user; a reload keeps the session, and signing out ends it', async () => {
    await using view = await open({ refusals: true })
    const { page } = view
    const like = view.post('Testing shows the presence of bugs').getByRole('button', { name: /^Like/ })
    const likes = Number(await like.innerText())
    assert.equal(await view.button('Write a post').count(), 0)
    const asked: string[] = []
    page.on('request', request => request.postData()?.includes('mutation Like') && asked.push(request.url()))
    await like.click()
    for (const way of ['Close', 'Use the demo login']) {
      await page.getByRole('alert').getByRole('button', { name: 'Sign in' }).click()
      await view.button(way).click()
    }
    await view.button('Write a post').waitFor()
    await waitUntil(async () => Number(await like.innerText()) === likes + 1) // what the visitor wanted
    assert.deepEqual([await page.getByRole('alert').count(), asked.length], [0, 2], 'not again without a sign-in')
    const release = await holdOne(page, /users\/me/)
    await page.evaluate("localStorage.removeItem('duet-person')") // so that the reload asks for the name
    await page.reload()
    await like.waitFor()
    assert.equal(await view.button(/^Sign in/).count(), 0) // nobody knows yet
    release()
    const menu = view.account.locator('.menu')
    for (const close of [
      () => page.keyboard.press('Escape'),
      () => page.getByRole('heading', { name: 'Feed' }).click(),
      () => menu.getByRole('link', { name: 'Account' }).click(),
    ]) {
      await view.account.locator('summary').click()
      await menu.getByText(ada).click() // inside, so it stays
      await close()
      await menu.waitFor({ state: 'hidden' })
    }
    await view.account.locator('summary').press('Enter')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Escape')
    await view.account.locator('summary:focus').waitFor()
    await view.account.click()
    assert.deepEqual((await view.account.innerText()).split(/\s+/).slice(0, 7), [
      ...['AL', 'Ada', 'Lovelace'],
      ...['Ada', 'Lovelace', 'admin', ada],
    ])
    await view.button('Sign out').click()
    await view.button('Sign in').waitFor()
    await page.reload()
    await view.button('Sign in').waitFor()
  })

  it('writes, edits, likes, comments and deletes, and offers each action only to users who may do it', async () => {
    await using view = await open({ as: ada })
    const { page } = view
    await view.button('Write a post').click()
    await page.getByLabel('Title').fill('A post of mine')
    await page.getByLabel('Text').fill('Its <b>text</b>.')
    await view.button('Publish').click()
    const post = view.post('A post of mine')
    await post.getByText('Its <b>text</b>.').waitFor()
    await view.button('Write a post').waitFor()

    await post.getByRole('button', { name: 'Like, 0 so far' }).click()
    await post.getByRole('button', { name: 'Like, 1 so far' }).waitFor()
    await post.getByRole('button', { name: '0 comments' }).click()
    await page.getByLabel('Your comment').fill('My comment')
    await view.button('Send').click()
    await post.getByRole('button', { name: '1 comment' }).waitFor()
    const { posts } = await read<{ posts: { id: string }[] }>(app, '{ posts(limit: 1) { id } }')
    await comment(posts[0]?.id ?? '', 'A later comment')
    await post.getByText('A later comment').waitFor() // so the own one has arrived as an event, too
    assert.equal(await post.getByText('My comment').count(), 1)
    await post.getByRole('button', { name: 'Edit the comment of Ada Lovelace' }).click()
    await page.getByLabel('The comment', { exact: true }).fill('My changed comment')
    await view.button('Save').click()
    await post.getByText('My changed comment').waitFor()
    const heads = await post.locator('.comment-head').allInnerTexts()
    assert.equal(heads.map(text => text.includes('edited')).join(), 'true,false')
    await post.getByRole('button', { name: 'Delete the comment of Ada Lovelace' }).click()
    await view.button('Keep it').click()
    await post.getByText('My changed comment').waitFor()
    await post.getByRole('button', { name: 'Delete the comment of Ada Lovelace' }).click()
    await view.button('Delete the comment').click()
    await post.getByRole('button', { name: '1 comment' }).waitFor()
    assert.equal(await post.getByText('My changed comment').count(), 0)

    await post.getByRole('button', { name: 'Edit “A post of mine”' }).click()
    await page.getByLabel('Title').fill('A changed post')
    await view.button('Save').click()
    await view.post('A changed post').getByText('Its <b>text</b>.').waitFor()
    assert.match(await view.post('A changed post').locator('.byline').innerText(), / · edited /)

    await using other = await open({ as: grace, ...ownContext })
    const seen = other.post('A changed post')
    await seen.getByRole('button', { name: 'Like, 1 so far' }).waitFor()
    assert.equal(await seen.getByRole('button', { name: /^(Edit|Delete)/ }).count(), 0)
    await comment(await write('A post of Grace'), 'Hers to delete', ada)
    const own = other.post('A post of Grace')
    await own.getByRole('button', { name: /comments?$/ }).click()
    await own.getByText('Hers to delete').waitFor()
    const buttons = (verb: string) => own.getByRole('button', { name: `${verb} the comment of Ada Lovelace` })
    assert.deepEqual([await buttons('Delete').count(), await buttons('Edit').count()], [1, 0])

    await view.button('Delete “A changed post”').click()
    await view.button('Delete the post').click()
    await page.locator('main:focus').waitFor() // the button that had the focus is gone
    for (const each of [view, other]) {
      await each.post('A changed post').waitFor({ state: 'detached' }) // the other page gets the deletion as well
    }
  })

  it('has an address for each view, also the former ones, and says so if an address is unknown', async () => {
    await using view = await open({ tab: '/health' })
    const { page } = view
    const heading = (name: string) => page.getByRole('heading', { name, level: 1 }).waitFor()
    await heading('Health')
    const titles = { '#requests': 'Requests', '#/nowhere': 'There is nothing here' }
    for (const [address, title] of Object.entries(titles)) {
      await page.evaluate(`location.hash = '${address}'`)
      await heading(title)
      assert.equal(await page.title(), `${title} · Duet console`)
      assert.equal(await page.evaluate('document.activeElement.tagName'), 'MAIN')
    }
    await page.goBack()
    await heading('Requests')
    await page.goForward()
    await page.getByRole('link', { name: 'Go to the feed' }).click()
    await heading('Feed')
  })

  it('logs each request with its status, time and rate limit, and copies it for a shell without secrets', async () => {
    await using view = await open({ permissions: ['clipboard-read', 'clipboard-write'] })
    const { page } = view
    await view.button('Sign in').click()
    await view.fillIn(ada)
    const liked = page.waitForResponse(answer => answer.request().postData()?.includes('mutation Like') === true)
    await page.getByRole('button', { name: /^Like/ }).first().click()
    await liked
    await view.show('Users')
    await page.getByLabel('Find by name or e-mail').fill(`o'neil@example.com`)
    await page.getByText('No name or e-mail begins with').waitFor()
    await view.show('Requests')
    const rows = await page.locator('tbody tr').allInnerTexts()
    const list = rows.find(row => row.includes('q='))
    assert.match(list ?? '', /GET\s*\/users\?\S*q=\S+[\s\S]*200[\s\S]*\d ms[\s\S]*\d+ left/)
    for (const name of ['Posts', 'Like']) {
      const row = rows.find(text => text.includes(`/graphql ${name}`)) ?? assert.fail(name)
      assert.match(row, /POST[\s\S]*200[\s\S]*no limit/)
    }

    const copy = async (name: RegExp) => {
      await page.evaluate(`navigator.clipboard.writeText('')`)
      await page.getByRole('button', { name }).first().click()
      const copied = () => page.evaluate<string>('navigator.clipboard.readText()')
      await waitUntil(async () => (await copied()) !== '')
      return copied()
    }
    const token = await logIn(app, ada, password)
    const run = async (command: string) => {
      const env = { ...process.env, TOKEN: token }
      const withStatus = command.replace('curl', "curl -w '%{http_code}'")
      return (await promisify(execFile)('bash', ['-c', withStatus], { env })).stdout
    }
    const search = await copy(/^Copy GET \/users\?.*q=/)
    assert.match(search, /"Authorization: Bearer \$TOKEN"/)
    assert.equal(await run(search), '[]200')
    assert.match(await run(await copy(/^Copy POST \/graphql/)), /^\{"data":\{"likePost":\{.*\}200$/)
    const login = await copy(/^Copy POST \/tokens/)
    assert.match(login, /ada@example\.com/)
    for (const command of [search, login]) {
      assert.ok(!command.includes(password))
      assert.doesNotMatch(command, /eyJ/)
    }
    for (const value of ['{ writeText: () => Promise.reject() }', 'undefined']) {
      // As without the permission, and as without TLS.
      await page.evaluate(`Object.defineProperty(navigator, 'clipboard', { value: ${value}, configurable: true })`)
      const asked = page.waitForEvent('dialog', { timeout: 20_000 })
      const clicked = page.getByRole('button', { name: /^Copy POST \/tokens/ }).click()
      assert.equal((await asked).defaultValue(), login)
      await (await asked).dismiss()
      await clicked
    }
  })

  it('pays what is written once, whichever answers are lost and whatever is tried again or sent again', async () => {
    await using view = await open({ tab: '/payments', as: ada, refusals: true })
    const { page } = view
    const amount = page.getByLabel('Amount (EUR)')
    for (const wrong of ['0', '0.001', '10000000000.01', 'ten']) {
      await amount.fill(wrong)
      assert.equal(await page.locator('input:invalid').count(), 1, wrong)
    }
    const pay = async (text: string) => {
      await amount.fill(text)
      await view.button('Pay').click()
    }
    const lose = ({ made }: { made: boolean }) => {
      const answer = async (route: Route) => {
        if (made) await route.fetch()
        await route.fulfill({ status: 503, headers: { 'retry-after': '60' }, json: { error: 'No answer in time' } })
      }
      return page.route(/\/payments$/, answer, { times: 1 })
    }
    const nextKey = async () => (await page.waitForRequest(/\/payments$/)).headers()['idempotency-key']
    const said = (text: string) => page.locator('.receipt strong').getByText(text).waitFor()
    await page.route(/\/payments$/, route => route.fulfill({ status: 503 }), { times: 1 }) // the client tries again
    await pay('12.5')
    await said('€12.50 is made')
    const first = Number((await page.locator('.receipt strong').innerText()).split(' ')[1])
    await lose({ made: true })
    await view.button('Send it again').click()
    await view.button('Try again').waitFor()
    await pay('12.5') // the same amount, but another payment
    await said(`Payment ${first + 1} of €12.50 is made`)
    assert.equal(await amount.inputValue(), '')

    await lose({ made: true })
    await pay('8')
    await view.button('Try again').waitFor()
    await view.button('Send it again').click() // of the payment before
    await said(`This was payment ${first + 1} of €12.50 again`)
    assert.equal(await amount.inputValue(), '8')
    const keyOfEight = nextKey()
    await view.button('Pay').click()
    await said(`This was payment ${first + 2} of €8.00 again`)
    assert.equal(await amount.inputValue(), '')

    await lose({ made: false })
    const keyOfThree = nextKey()
    await pay('3')
    await view.button('Try again').waitFor()
    assert.notEqual(await keyOfThree, await keyOfEight)
    await amount.fill('4')
    await view.button('Try again').click()
    await said(`Payment ${first + 3} of €4.00 is made`)
    await lose({ made: true })
    await view.button('Send it again').click()
    await view.button('Try again').waitFor()
    await amount.fill('5')
    await view.button('Try again').click()
    await said(`This was payment ${first + 3} of €4.00 again`)
    assert.equal(await amount.inputValue(), '5')
    for (const [typed, next] of [['5', ''] as const, ['6', '7'] as const]) {
      const release = await holdOne(page, /\/payments$/)
      await pay(typed)
      if (next === '')
        await view.button('Send it again').dispatchEvent('click') // which it does not while it pays
      else await amount.fill(next)
      release()
      await said(`€${typed}.00 is made`)
      assert.equal(await amount.inputValue(), next)
    }
    await view.show('Requests')
    const log = (await page.locator('tbody tr').allInnerTexts()).map(row => row.split('\t').slice(1, 3).join(' '))
    const paid = log.filter(row => row.startsWith('POST')).map(row => row.slice('POST/payments '.length))
    assert.deepEqual(paid, [
      ...['201', '201', 'replay 200', '503', '201', '503', 'replay 200', 'replay 200'], // newest first
      ...['503', '201', '503', 'attempt 2 201', '503'],
    ])
    await view.button('Clear').click()
    await page.getByText('No requests yet').waitFor()
    assert.ok(await view.button('Clear').isDisabled())
  })

  it('shows whether the service is ready, and draws charts of requests, sockets and delays while they arrive, which it asks for only then', async () => {
    await using view = await open({ as: ada, refusals: true })
    const { page } = view
    let asked = 0
    page.on('request', request => {
      if (request.url().endsWith('/health/ready')) asked++
    })
    await page.clock.install()
    await view.show('Health')
    await page.getByText('Ready', { exact: true }).waitFor()
    const until = (holds: () => Promise<boolean> | boolean) =>
      waitUntil(async () => {
        await page.clock.runFor(2000)
        return holds()
      })
    const enter = async (token: string) => {
      await page.getByLabel('Token of the metrics').fill(token)
      await view.button('Show the metrics').click()
    }
    await enter('another token')
    await until(() => page.getByText('That was not the right token.').isVisible())
    await enter(metricsToken)
    const value = async (title: string) =>
      page.getByRole('figure', { name: title, exact: true }).locator('.value').innerText()
    const untilShown = (title: string, text: RegExp) => until(async () => text.test(await value(title)))
    await untilShown('Open sockets', /^[1-9]\d* now$/)
    assert.match(await value('Requests'), /^\d+(\.\d)? a second$/)
    assert.match(await value('Delay of the event loop, p99'), /^\d+(\.\d)? ms$/)
    await write('For the delay')
    await untilShown('From commit to subscriber', /^\d+(\.\d)? ms$/)
    await page.locator('.chart .curve').first().waitFor()
    assert.ok(asked >= 2)
    let sockets = 0
    await page.route(/\/metrics$/, route => route.fulfill({ body: `duet_sockets ${sockets}` }))
    for (sockets of [700, 500]) await untilShown('Open sockets', new RegExp(`^${sockets} now$`))
    assert.equal(await value('Subscriptions'), '0 now')
    await page.getByRole('img', { name: 'Open sockets: now 500 now, at most 700 in the last minutes' }).waitFor()
    await page.unroute(/\/metrics$/)

    for (const [title, answer] of [
      ['Not ready', { status: 503 }],
      ['No answer', undefined],
    ] as const) {
      await page.route(/health\/ready/, route => (answer ? route.fulfill(answer) : route.abort()))
      await until(() => page.getByText(title, { exact: true }).isVisible())
      await page.unroute(/health\/ready/)
    }
    await until(() => page.getByText('Ready', { exact: true }).isVisible())
    const release = await holdOne(page, /health\/ready/)
    const before = asked + 1
    await until(() => asked === before)
    await view.show('Feed')
    const answered = page.waitForResponse(/health\/ready/)
    release()
    await answered
    for (let round = 0; round < 10; round++) await page.clock.runFor(2000)
    await view.show('Users') // a round trip, in which a request would have been seen
    assert.equal(asked, before)
    await view.show('Requests')
    const checks = page.getByRole('cell', { name: '/health/ready' })
    assert.equal(await checks.count(), 0)
    await page.getByLabel('Show health checks, too').check()
    await checks.first().waitFor()
    await page.getByText('no answer').first().waitFor()
  })
})
