import { join } from 'node:path'
import { startTestApp } from '../support/app.ts'
import { openPage, startBrowser } from '../support/browser.ts'
import { temporaryFolder } from '../support/folder.ts'
import { createTemplates } from '../support/templates.ts'

/** Writes the screenshot of the README, `docs/images/console.png`, with the demo data. */
using database = temporaryFolder()
await createTemplates(database.path, undefined)
await using app = await startTestApp({ DEMO_DATA: 'true', RATE_LIMIT_MAX: '0' })
const browser = await startBrowser()
try {
  const look = { viewport: { width: 1280, height: 860 }, colorScheme: 'light' } as const
  await using opened = await openPage(browser, `${app.url}/console`, look)
  const { page } = opened
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('button', { name: 'Use the demo login' }).click()
  await page.getByRole('button', { name: 'Write a post' }).waitFor()
  await page.getByRole('button', { name: 'comment' }).first().click()
  await page.getByLabel('Your comment').waitFor()
  await page.screenshot({ path: join(import.meta.dirname, '../../docs/images/console.png') })
} finally {
  await browser.close()
}
