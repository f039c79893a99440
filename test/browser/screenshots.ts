import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Page } from 'playwright-core'
import { startTestApp } from '../support/app.ts'
import { openPage, startBrowser } from '../support/browser.ts'
import { temporaryFolder } from '../support/folder.ts'
import { createTemplates } from '../support/templates.ts'

/**
 * Takes screenshots with the demo data. Without an argument it writes the one of the README, `docs/images/console.png`.
 * With a folder as argument it writes screenshots of every page and every tab, light, dark and on a phone.
 */
const [, , folder] = process.argv

const desk = { width: 1280, height: 860 }
const looks = {
  light: { viewport: desk, colorScheme: 'light' },
  dark: { viewport: desk, colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 844 }, colorScheme: 'light', deviceScaleFactor: 2, hasTouch: true },
} as const

using database = temporaryFolder()
await createTemplates(database.path, undefined)
await using app = await startTestApp({ DEMO_DATA: 'true', RATE_LIMIT_MAX: '0' })
const browser = await startBrowser()
try {
  if (folder === undefined) await takeForReadme()
  else for (const look of Object.keys(looks)) await takeAll(look as keyof typeof looks, resolve(folder))
} finally {
  await browser.close()
}

async function takeForReadme(): Promise<void> {
  await using opened = await openPage(browser, `${app.url}/console`, looks.light)
  await signIn(opened.page)
  await showComments(opened.page)
  await opened.page.screenshot({ path: join(import.meta.dirname, '../../docs/images/console.png') })
}

async function takeAll(look: keyof typeof looks, into: string): Promise<void> {
  mkdirSync(into, { recursive: true })
  await using opened = await openPage(browser, `${app.url}/console`, looks[look])
  const { page } = opened
  const take = (name: string) => page.screenshot({ path: join(into, `${look}-${name}.png`) })
  await page.getByRole('article').first().waitFor()
  await take('signed-out')
  await signIn(page)
  await showComments(page)
  await take('feed')
  for (const name of ['Users', 'Orders', 'Payments', 'Requests', 'Health', 'Account']) {
    await page.evaluate(`location.hash = '#/${name.toLowerCase()}'`)
    await page.getByRole('heading', { name, level: 1 }).waitFor()
    await page.waitForLoadState('networkidle')
    await take(name.toLowerCase())
  }
  for (const path of ['', 'docs', 'docs/graphql', 'docs/api', 'graphql', 'nowhere']) {
    await page.goto(`${app.url}/${path}`)
    await page.getByRole('banner').getByRole('group').waitFor()
    if (path === 'graphql') await page.locator('.graphiql-execute-button').waitFor()
    await take(path.replace('/', '-') || 'home')
  }
}

async function signIn(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('button', { name: 'Use the demo login' }).click()
  await page.getByRole('button', { name: 'Write a post' }).waitFor()
}

async function showComments(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'comment' }).first().click()
  await page.getByLabel('Your comment').waitFor()
}
