import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Page } from 'playwright-core'
import { startTestApp } from '../support/app.ts'
import { openPage, startBrowser } from '../support/browser.ts'

/**
 * Takes screenshots of the console with the demo data. Without an argument it writes the one of the README,
 * `docs/images/console.png`. With a folder as argument it writes screenshots of every tab, light, dark and on a phone.
 */
const folder = process.argv[2]

const looks = {
  light: { viewport: { width: 1280, height: 860 }, colorScheme: 'light' },
  dark: { viewport: { width: 1280, height: 860 }, colorScheme: 'dark' },
  phone: { viewport: { width: 375, height: 740 }, colorScheme: 'light', deviceScaleFactor: 2, hasTouch: true },
} as const

await using app = await startTestApp({ DEMO_DATA: 'true', RATE_LIMIT_MAX: '0' })
const browser = await startBrowser()
try {
  if (folder === undefined) await takeForReadme()
  else for (const look of Object.keys(looks)) await takeAll(look as keyof typeof looks, resolve(folder))
} finally {
  await browser.close()
}

async function takeForReadme(): Promise<void> {
  const images = join(import.meta.dirname, '../../docs/images')
  mkdirSync(images, { recursive: true })
  await using opened = await openPage(browser, `${app.url}/console`, looks.light)
  await signIn(opened.page)
  await opened.page
    .getByRole('button', { name: /comments?$/ })
    .first()
    .click()
  await opened.page.getByLabel('Your comment').waitFor()
  await opened.page.screenshot({ path: join(images, 'console.png') })
}

async function takeAll(look: keyof typeof looks, into: string): Promise<void> {
  mkdirSync(into, { recursive: true })
  await using opened = await openPage(browser, `${app.url}/console`, looks[look])
  const { page, troubles } = opened
  const take = (name: string) => page.screenshot({ path: join(into, `${look}-${name}.png`) })
  await page.getByRole('article').first().waitFor()
  await take('signed-out')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await take('sign-in')
  await page.getByRole('button', { name: 'Use the demo login' }).click()
  await page.getByRole('button', { name: 'Write a post' }).waitFor()
  await page
    .getByRole('button', { name: /comments?$/ })
    .first()
    .click()
  await page.getByLabel('Your comment').waitFor()
  await take('feed')
  const show = async (name: string) => {
    await page.getByRole('link', { name, exact: true }).click()
    await page.getByRole('heading', { name, level: 1 }).waitFor()
  }
  await show('Users')
  await page.getByRole('button', { name: 'Edit Ada Lovelace' }).waitFor()
  await take('users')
  await page.getByRole('button', { name: 'New user' }).click()
  await take('new-user')
  await page.keyboard.press('Escape')
  await show('Orders')
  await page.getByRole('button', { name: 'Refresh' }).first().waitFor()
  await page.getByRole('button', { name: 'Track' }).first().click()
  await page.getByText('Carrier').waitFor()
  await take('orders')
  await page.getByRole('button', { name: 'New order' }).click()
  await take('new-order')
  await page.keyboard.press('Escape')
  await show('Payments')
  await take('payments-empty')
  await page.getByRole('button', { name: 'Pay', exact: true }).click()
  await page.getByRole('button', { name: 'Send again with this key' }).click()
  await page.getByText('Replayed').waitFor()
  await take('payments')
  await show('Health')
  await page.getByText('Ready', { exact: true }).waitFor()
  await page.waitForTimeout(13000)
  await take('health')
  await show('Requests')
  await take('requests')
  if (troubles.length > 0) console.error(look, troubles)
}

async function signIn(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('button', { name: 'Use the demo login' }).click()
  await page.getByRole('button', { name: 'Write a post' }).waitFor()
}
