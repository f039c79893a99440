import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after, before, test } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { startTestApp } from '../support/app.ts'
import { browserMissing, openPage, startBrowser } from '../support/browser.ts'
import { inForm, onlyInFull } from '../support/form.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const phone = { viewport: { width: 375, height: 720 } }
const desk = { viewport: { width: 1200, height: 800 } }
const dark = { ...desk, colorScheme: 'dark' } as const

interface Finding {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string }[]
}

/** The accessibility problems that axe-core finds. */
async function findings(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe)
  const found = (await page.evaluate('axe.run(document).then(({ violations }) => violations)')) as readonly Finding[]
  const serious = found.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  return serious.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)
}

test('the home page and the documentation', { skip: browserMissing }, async suite => {
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
      for (const path of inForm(['/', '/docs/how-to/add-a-field'], ['/', '/docs', '/docs/readme', '/docs/graphql'])) {
        // The page's content security policy forbids scripts. Only axe-core may run.
        await using opened = await openPage(browser, app.url + path, { ...options, bypassCSP: true })
        assert.deepEqual(await findings(opened.page), [], path)
      }
    })
  }

  await suite.test('show no errors, are not wider than the window, and are dark if the user prefers that', async () => {
    await using opened = await openPage(browser, app.url, desk)
    const { page, troubles } = opened
    for (const path of ['/', '/docs', '/docs/graphql']) {
      if (path !== '/') await page.goto(app.url + path)
      for (const [colorScheme, ground] of Object.entries({ light: 'rgb(250, 249, 247)', dark: 'rgb(19, 18, 23)' })) {
        await page.emulateMedia({ colorScheme: colorScheme as 'light' | 'dark' })
        assert.equal(await page.evaluate('getComputedStyle(document.body).backgroundColor'), ground)
      }
      for (const { viewport } of [phone, desk]) {
        await page.setViewportSize(viewport)
        assert.equal(await page.evaluate('document.documentElement.scrollWidth'), viewport.width, path)
      }
    }
    assert.deepEqual(troubles, [])
  })

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
    'lead to the API reference, which opens at the operation, and back',
    { skip: onlyInFull },
    async () => {
      await using opened = await openPage(browser, `${app.url}/docs`, desk)
      const { page, troubles } = opened
      await page.getByRole('link', { name: 'POST /payments' }).click()
      await page.locator('[id^=operations-Payments-].is-open').waitFor()
      await page.getByRole('link', { name: 'Documentation', exact: true }).click()
      assert.equal(page.url(), `${app.url}/docs`)
      assert.deepEqual(troubles, [])
    },
  )
})
