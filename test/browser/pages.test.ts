import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { startTestApp } from '../support/app.ts'
import { browserMissing, openPage } from '../support/browser.ts'
import { inForm } from '../support/form.ts'
import { logIn } from '../support/rest.ts'
import { sharedBrowser } from '../support/shared-browser.ts'
import { metricOf } from '../support/sockets.ts'
import { testTimeoutMs, waitUntil } from '../support/wait.ts'
import { axe, findings } from './axe.ts'
import { holdAnswer } from './console-page.ts'

const phone = { viewport: { width: 375, height: 720 } }
const desk = { viewport: { width: 1200, height: 800 } }

/** The serious accessibility problems in a part of the page. GraphiQL itself is not ours. */
async function seriousFindings(page: Page, part = page.url().endsWith('/graphql') ? '.top' : 'html') {
  await page.evaluate(axe)
  return (await findings(page, part)).filter(text => /^(serious|critical)/.test(text))
}

/** On parts of pages axe-core runs only in the long form: it takes seconds. */
const withAxe = inForm(false, true)

/** How many tables must be scrolled to see their last column. */
const cutTables =
  "[...document.querySelectorAll('.table')].filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).length"

test('the pages', { skip: browserMissing }, async suite => {
  const browser = await sharedBrowser()
  await using app = await startTestApp({ DEMO_DATA: 'true', RATE_LIMIT_MAX: '0' })

  await suite.test('are accessible, also in dark mode and on a phone', async () => {
    const most = ['/', '/docs', '/docs/readme', '/docs/clients', '/docs/http', '/docs/graphql', '/docs/api', '/graphql']
    const paths = [...inForm(['/docs/how-to/add-a-field'], most), '/nowhere']
    for (const options of inForm([desk], [desk, { ...desk, colorScheme: 'dark' } as const, phone])) {
      for (const path of paths) {
        // The page's content security policy forbids other scripts. Only axe-core may run.
        await using opened = await openPage(browser, app.url + path, { ...options, bypassCSP: true })
        await opened.page.getByRole('button', { name: 'Sign in' }).waitFor()
        assert.deepEqual(await seriousFindings(opened.page), [], path)
      }
    }
  })

  await suite.test(
    'show no errors, are dark if the user prefers that, and have no part that is wider than the window',
    async () => {
      await using opened = await openPage(browser, app.url, desk)
      const { page, troubles } = opened
      for (const path of ['/', '/docs', '/docs/graphql', '/docs/how-to/add-a-mutation', '/docs/api']) {
        if (path !== '/') await page.goto(app.url + path)
        for (const [colorScheme, ground] of Object.entries({ light: 'rgb(250, 249, 247)', dark: 'rgb(19, 18, 23)' })) {
          await page.emulateMedia({ colorScheme: colorScheme as 'light' | 'dark' })
          assert.equal(await page.evaluate('getComputedStyle(document.body).backgroundColor'), ground)
        }
        for (const { viewport } of [phone, desk]) {
          await page.setViewportSize(viewport)
          assert.equal(await page.evaluate('document.documentElement.scrollWidth'), viewport.width, path)
          assert.equal(await page.evaluate(cutTables), 0, path)
        }
      }
      assert.deepEqual(troubles, [])
    },
  )

  await suite.test('find sections by all words and by their beginnings, with the keyboard alone', async () => {
    await using opened = await openPage(browser, `${app.url}/docs/api`, { ...desk, bypassCSP: true })
    const { page, troubles } = opened
    const dialog = page.getByRole('dialog', { name: 'Search' })
    const results = dialog.getByRole('link')
    await page.getByRole('button', { name: 'Search' }).waitFor()
    await page.evaluate(`held = Promise.withResolvers()
      ask = fetch
      fetch = (...sent) => held.promise.then(() => ask(...sent))`)
    await page.keyboard.press('/')
    await page.keyboard.type('Idempotency-K resumed nowhere')
    assert.equal(await dialog.getByRole('status').innerText(), 'Loading') // not that nothing is found
    await page.evaluate('fetch = ask; held.reject()')
    await dialog.getByText('The service cannot be reached.').waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('Meta+k')
    assert.ok(await dialog.isVisible())
    assert.notEqual(await dialog.getByRole('status').innerText(), 'The service cannot be reached.', 'it asks again')
    await dialog.getByText('Nothing found.').waitFor()
    await page.mouse.click(5, 5)
    assert.ok(!(await dialog.isVisible()), 'a click beside it closes it')
    await page.getByLabel('Body').first().press('/')
    assert.ok(!(await dialog.isVisible()), 'a slash is text there')
    await page.getByLabel('Body').first().press('Control+k')
    await page.keyboard.type('subscriptions resum') // replaces what was there
    await results.first().getByText('The GraphQL interface › Subscriptions').waitFor()
    assert.match(await results.first().locator('mark').first().innerText(), /^(subscriptions?|resum)$/i)
    if (withAxe) assert.deepEqual(await seriousFindings(page, '.search'), [])
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowUp', 'ArrowUp']) await page.keyboard.press(key)
    assert.equal(await page.evaluate('document.activeElement.type'), 'search')
    await page.keyboard.press('Enter')
    await page.waitForURL(`${app.url}/docs/graphql#subscriptions`)
    await page.getByRole('button', { name: 'Search' }).click()
    await page.keyboard.type('persisted')
    await results.getByText('The GraphQL interface › Persisted queries').click()
    await page.waitForURL(`${app.url}/docs/graphql#persisted-queries`)
    await dialog.waitFor({ state: 'hidden' })
    assert.deepEqual(troubles, [])
  })

  await suite.test('copy a command without its prompt and its output, with the address of the page', async () => {
    const permissions = ['clipboard-read', 'clipboard-write']
    await using opened = await openPage(browser, `${app.url}/docs/readme`, { ...desk, permissions })
    const { page } = opened
    await page.clock.install()
    const block = page.locator('.code', { hasText: '/users/77' })
    await block.getByRole('button', { name: 'Copy' }).click()
    await page.getByRole('status').getByText('Copied').waitFor()
    await block.getByRole('button', { name: 'Copied' }).waitFor()
    const copied = await page.evaluate('navigator.clipboard.readText()')
    assert.equal(copied, `curl -s ${app.url}/users/1\ncurl -s ${app.url}/users/77`)
    await page.clock.runFor(2000)
    assert.equal(await page.getByRole('status').innerText(), '', 'so that it is said each time')
  })

  await suite.test('show the address by which they were reached, behind a gateway with a prefix too', async () => {
    await using context = await browser.newContext(desk)
    context.setDefaultTimeout(testTimeoutMs)
    const page = await context.newPage()
    await page.route('http://gateway.example/duet/**', async route => {
      const url = route.request().url().replace('http://gateway.example/duet', app.url)
      const headers = { accept: route.request().headers().accept ?? '', host: new URL(app.url).host }
      await route.fulfill({ response: await route.fetch({ url, headers }) })
    })
    const shown = async (path: string) => {
      await page.goto(`http://gateway.example/duet${path}`)
      await page.getByRole('button', { name: 'Copy' }).first().waitFor({ state: 'attached' })
      const text = await page.locator('main').innerText()
      assert.ok(!text.includes(app.url), path)
      return text
    }
    assert.match(await shown('/'), /curl -s http:\/\/gateway\.example\/duet\/graphql /)
    assert.match(await shown('/docs/clients'), /'http:\/\/gateway\.example\/duet\/graphql'/)
    assert.match(await shown('/docs/readme'), /ws:\/\/gateway\.example\/duet\/graphql/)
    await shown('/docs/tutorial')
    await page.locator('a[href="http://gateway.example/duet/app/"]').waitFor()
    assert.match(await shown('/docs/api'), /curl -i -X POST http:\/\/gateway\.example\/duet\/users /)
    // A page that came without TLS has no clipboard.
    await page.locator('.operation .code').first().hover()
    await page.getByRole('button', { name: 'Copy' }).first().click()
    assert.equal(await page.evaluate('document.activeElement.className'), 'copy') // and the focus stays there
    await page.getByLabel('Body').first().press('Control+a')
    await page.keyboard.press('Control+v')
    assert.equal(await page.getByLabel('Body').first().inputValue(), 'curl -i http://gateway.example/duet/users')
  })

  await suite.test('have their menu on a phone behind a button, with the present guide and its sections', async () => {
    await using opened = await openPage(browser, `${app.url}/docs/limits`, { ...phone, bypassCSP: true })
    const { page } = opened
    const menu = page.getByRole('navigation', { name: 'Documentation' })
    assert.ok(!(await menu.isVisible()))
    await page.getByRole('button', { name: 'Documentation' }).click()
    await menu.getByRole('link', { name: 'Limits', exact: true }).and(page.locator('[aria-current=page]')).waitFor()
    if (withAxe) assert.deepEqual(await seriousFindings(page, '#menu'), [])
    await page.keyboard.press('Escape')
    await menu.waitFor({ state: 'hidden' })
    await page.keyboard.press('Enter') // the focus is on the button again
    await menu.getByRole('link', { name: 'Logins and passwords' }).click()
    await menu.waitFor({ state: 'hidden' })
    assert.equal(page.url(), `${app.url}/docs/limits#logins-and-passwords`)
    await page.getByRole('button', { name: 'Documentation' }).click()
    await menu.getByRole('link', { name: 'The HTTP interface' }).click()
    await page.waitForURL(`${app.url}/docs/http`)
  })

  await suite.test('share one session: a sign-in leads back, all pages use it, a sign-out ends it on all', async () => {
    await using opened = await openPage(browser, `${app.url}/docs/graphql`, desk)
    const { page: guide, context, troubles } = opened
    await guide.getByRole('button', { name: 'Sign in' }).click()
    await guide.getByRole('button', { name: 'Use the demo login' }).click()
    await guide.waitForURL(`${app.url}/docs/graphql`)
    const account = (page: Page) => page.getByRole('banner').getByRole('group')
    await account(guide).getByText('Ada Lovelace').first().waitFor()
    const listen = "import('/header.js').then(({ onNextUser }) => onNextUser(() => nextUsers++))"
    await guide.evaluate(`nextUsers = 0; ${listen}`)

    const other = await context.newPage()
    await other.goto(`${app.url}/docs/api`)
    await other.getByRole('link', { name: 'GET /users/me' }).click()
    const operation = other.locator('form[data-path="/users/me"]')
    await operation.getByRole('button', { name: 'Send' }).click()
    await operation.getByText('etag: ').waitFor() // the example has no headers
    await operation.getByText('ada@example.com').waitFor()
    const user = other.locator('form[data-method=GET][data-path="/users/{id}"]')
    const late = await holdAnswer(other, /users\/1%2F2%3F3$/)
    for (const id of ['1/2?3', '2']) {
      await user.locator('input').first().fill(id)
      await other.keyboard.press('Enter')
    }
    await user.getByText('grace@example.com').waitFor()
    await late.send()
    assert.match(await user.locator('output').innerText(), /^200 OK/, 'not the late answer to the request before')
    const list = other.locator('form[data-method=GET][data-path="/users"]')
    for (const input of await list.locator('input').all()) {
      await input.fill((await input.getAttribute('name')) === 'q' ? 'a&b' : '')
    }
    const listed = other.waitForRequest(`${app.url}/users?q=a%26b`)
    await list.getByRole('button', { name: 'Send' }).click()
    await listed
    const change = other.locator('form[data-method=PATCH][data-path="/users/{id}"]')
    await change.locator('[name=If-Match]').fill('"other"')
    const sent = other.waitForRequest(request => request.method() === 'PATCH')
    await change.getByRole('button', { name: 'Send' }).click()
    const { 'content-type': type, 'if-match': version } = await (await sent).allHeaders()
    assert.deepEqual([type, version], ['application/json', '"other"'])
    await change.getByText('412 Precondition Failed').waitFor()
    await other.route(/users\/\d+$/, route => route.abort(), { times: 1 })
    await change.getByRole('button', { name: 'Send' }).click()
    await change.getByText('The service did not answer.').waitFor()
    assert.equal(await change.getByText('412 Precondition Failed').count(), 0)

    const renew = async () => {
      const token = await logIn(app, 'ada@example.com', 'demo-password')
      await other.evaluate(`localStorage.setItem('duet-token', '${token}')`)
      return `Bearer ${token}`
    }
    const run = async (name: string) => {
      await other.locator('.graphiql-execute-button').click()
      await other.getByRole('menuitem', { name, exact: true }).click()
    }
    await other.goto(`${app.url}/graphql?query=query Own{me{id}} subscription New{postAdded{id}}`)
    await run('Own')
    await other.locator('.graphiql-response .view-lines', { hasText: '"1"' }).waitFor()
    for (const { viewport } of [phone, desk]) {
      await other.setViewportSize(viewport)
      // GraphiQL measures the page anew after it has another size.
      await waitUntil(async () => (await other.evaluate('document.documentElement.scrollWidth')) === viewport.width)
      const { width, height, y } = (await other.locator('.graphiql-response').boundingBox()) ?? assert.fail()
      assert.ok(width > 300 && y + height <= viewport.height, 'the answer is seen')
    }
    const renewed = await renew()
    const asked = other.waitForRequest(`${app.url}/graphql`)
    await run('Own')
    assert.equal(await (await asked).headerValue('authorization'), renewed)
    const latest = await renew()
    const begun = other.waitForEvent('websocket').then(socket => socket.waitForEvent('framesent'))
    await run('New')
    assert.equal(JSON.parse(String((await begun).payload)).payload.Authorization, latest)
    const subscriptions = () => metricOf(app, 'duet_subscriptions')
    await waitUntil(async () => (await subscriptions()) === 1)
    await account(other).click()
    await other.getByRole('button', { name: 'Sign out', exact: true }).click()
    await waitUntil(async () => (await subscriptions()) === 0) // it was one of the former user
    await guide.getByRole('button', { name: 'Sign in' }).waitFor()
    assert.equal(await guide.evaluate('nextUsers'), 1, 'a renewal is no next user')
    assert.equal(await guide.evaluate('JSON.stringify(localStorage).includes("eyJ") || document.cookie'), '')
    assert.deepEqual(troubles, [])
  })
})
