import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after, before, test } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { startTestApp } from '../support/app.ts'
import { browserMissing, openPage, startBrowser } from '../support/browser.ts'
import { inForm, onlyInFull } from '../support/form.ts'
import { logIn } from '../support/rest.ts'
import { metricOf } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const phone = { viewport: { width: 375, height: 720 } }
const desk = { viewport: { width: 1200, height: 800 } }
const dark = { ...desk, colorScheme: 'dark' } as const

interface Finding {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string }[]
}

/** The accessibility problems that axe-core finds. GraphiQL itself is not ours. */
async function findings(page: Page): Promise<readonly string[]> {
  const scope = page.url().endsWith('/graphql') ? "'.top'" : 'document'
  await page.evaluate(axe)
  const found = (await page.evaluate(`axe.run(${scope}).then(({ violations }) => violations)`)) as readonly Finding[]
  const serious = found.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  return serious.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)
}

/** How many tables must be scrolled to see their last column. */
const cutTables =
  "[...document.querySelectorAll('.table')].filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).length"

test('the pages', { skip: browserMissing }, async suite => {
  let browser: Browser
  let app: Awaited<ReturnType<typeof startTestApp>>
  before(async () => {
    browser = await startBrowser()
    app = await startTestApp({ DEMO_DATA: 'true', RATE_LIMIT_MAX: '0' })
  })
  after(async () => {
    await browser?.close()
    await app?.[Symbol.asyncDispose]()
  })

  const forms: Readonly<Record<string, { readonly options: BrowserContextOptions; readonly skip: string | false }>> = {
    light: { options: desk, skip: false },
    dark: { options: dark, skip: onlyInFull }, // axe-core takes seconds
    'on a phone': { options: phone, skip: onlyInFull },
  }
  for (const [name, { options, skip }] of Object.entries(forms)) {
    await suite.test(`are accessible, ${name}`, { skip }, async () => {
      const all = ['/', '/docs', '/docs/readme', '/docs/graphql', '/docs/api', '/graphql', '/nowhere']
      for (const path of inForm(['/docs/how-to/add-a-field', '/nowhere'], all)) {
        // The page's content security policy forbids other scripts. Only axe-core may run.
        await using opened = await openPage(browser, app.url + path, { ...options, bypassCSP: true })
        await opened.page.getByRole('button', { name: 'Sign in' }).waitFor()
        assert.deepEqual(await findings(opened.page), [], path)
      }
    })
  }

  await suite.test(
    'show no errors, are not wider than the window, nor are their tables, and are dark if the user prefers that',
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

  await suite.test('lead from the home page to a section of a guide, and back', async () => {
    await using opened = await openPage(browser, app.url, desk)
    const { page, troubles } = opened
    await page.getByRole('navigation', { name: 'Start here' }).getByText('Documentation').click()
    await page.getByRole('link', { name: 'The GraphQL interface' }).click()
    await page.getByRole('navigation', { name: 'Documentation' }).getByRole('link', { name: 'Limits' }).first().click()
    assert.equal(page.url(), `${app.url}/docs/graphql#limits`)
    assert.ok(await page.getByRole('heading', { name: 'Limits' }).first().isVisible())
    await page.getByRole('link', { name: 'Duet', exact: true }).click()
    assert.equal(page.url(), `${app.url}/`)
    assert.deepEqual(troubles, [])
  })

  await suite.test(
    'share one session: a sign-in leads back, all pages use it, and a sign-out ends it on all',
    async () => {
      await using opened = await openPage(browser, `${app.url}/docs/graphql`, desk)
      const { page: guide, context, troubles } = opened
      await guide.getByRole('button', { name: 'Sign in' }).click()
      await guide.getByRole('button', { name: 'Use the demo login' }).click()
      await guide.waitForURL(`${app.url}/docs/graphql`)
      const account = (page: Page) => page.getByRole('banner').getByRole('group')
      await account(guide).getByText('Ada Lovelace').first().waitFor()

      const other = await context.newPage()
      await other.goto(`${app.url}/docs/api`)
      await other.getByRole('link', { name: 'GET /users/me' }).click()
      const operation = other.locator('form[data-path="/users/me"]')
      await operation.getByRole('button', { name: 'Send' }).click()
      await operation.getByText('etag: ').waitFor() // the example has no headers
      await operation.getByText('ada@example.com').waitFor()
      const strange = other.waitForRequest(`${app.url}/users/1%2F2%3F3`)
      await other.locator('form[data-method=GET][data-path="/users/{id}"] input').first().fill('1/2?3')
      await other.keyboard.press('Enter')
      await strange

      const renew = async () => {
        const token = await logIn(app, 'ada@example.com', 'demo-password')
        await other.evaluate(`localStorage.setItem('duet-token', '${token}')`)
        return `Bearer ${token}`
      }
      await other.goto(`${app.url}/graphql?query={me{id}}`)
      await other.locator('.graphiql-execute-button').click()
      await other.locator('.graphiql-response .view-lines', { hasText: '"1"' }).waitFor()
      const renewed = await renew()
      const asked = other.waitForRequest(`${app.url}/graphql`)
      await other.locator('.graphiql-execute-button').click()
      assert.equal(await (await asked).headerValue('authorization'), renewed)
      await other.goto(`${app.url}/graphql?query=subscription{postAdded{id}}`)
      await other.locator('.graphiql-execute-button').waitFor()
      const latest = await renew()
      const begun = other.waitForEvent('websocket').then(socket => socket.waitForEvent('framesent'))
      await other.locator('.graphiql-execute-button').click()
      assert.equal(JSON.parse(String((await begun).payload)).payload.Authorization, latest)
      const subscriptions = () => metricOf(app, 'duet_subscriptions')
      await waitUntil(async () => (await subscriptions()) === 1)
      await account(other).click()
      await other.getByRole('button', { name: 'Sign out', exact: true }).click()
      await waitUntil(async () => (await subscriptions()) === 0) // it was one of the former user
      await guide.getByRole('button', { name: 'Sign in' }).waitFor()
      assert.equal(await guide.evaluate('JSON.stringify(localStorage).includes("eyJ") || document.cookie'), '')
      assert.deepEqual(troubles, [])
    },
  )
})
