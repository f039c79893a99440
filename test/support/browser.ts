import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { pathOf } from './daemon.ts'
import { notInQuick } from './form.ts'
import { testTimeoutMs } from './wait.ts'

/** The program without windows needs half the CPU time for a page. The others are one program with different names. */
const names = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome']
const program = names.map(pathOf).find(path => path !== undefined)

/** The reason to skip tests in a browser, if there is one. With CI=true they run, and fail without a browser. */
export const browserMissing =
  notInQuick || (program === undefined && process.env.CI !== 'true' && 'chromium is not installed')

/** The Chromium of this machine, headless. Names that end with `.test` are this machine. Tests use `sharedBrowser`. */
export async function startBrowser(): Promise<Browser> {
  if (program === undefined) throw new Error('chromium is not on the PATH')
  const names = '--host-resolver-rules=MAP *.test 127.0.0.1'
  const args = ['--no-sandbox', '--disable-gpu', '--process-per-site', names]
  return chromium.launch({ executablePath: program, args })
}

export interface OpenPage extends AsyncDisposable {
  readonly page: Page
  readonly context: BrowserContext
  /** Errors on the console of the page, uncaught exceptions, and files that did not load. */
  readonly troubles: readonly string[]
}

/**
 * A new page, which has its own `sessionStorage`. Pages without options share one context, because a new context takes
 * as long as a test. `script` runs before the scripts of the page.
 */
export async function openPage(
  browser: Browser,
  url: string,
  { script, ...options }: BrowserContextOptions & { readonly script?: string } = {},
): Promise<OpenPage> {
  const isShared = Object.keys(options).length === 0
  const known = isShared ? shared.get(browser) : undefined
  const context = known ?? (await browser.newContext({ reducedMotion: 'reduce', ...options }))
  if (isShared) shared.set(browser, context)
  context.setDefaultTimeout(testTimeoutMs)
  const page = await context.newPage()
  if (script !== undefined) await page.addInitScript(script)
  const troubles: string[] = []
  page.on('console', message => {
    const isTrouble = message.type() === 'error' || message.type() === 'warning'
    if (isTrouble && !message.text().endsWith(closedEarly)) troubles.push(message.text())
  })
  page.on('pageerror', error => troubles.push(String(error)))
  await page.goto(url)
  return { page, context, troubles, [Symbol.asyncDispose]: () => (isShared ? page.close() : context.close()) }
}

/** A page that no longer needs its socket closes it, even if it is not connected yet. */
const closedEarly = 'WebSocket is closed before the connection is established.'

const shared = new WeakMap<Browser, BrowserContext>()

/** Ends what pages without options have shared, such as storages and a clock. */
export async function closeSharedContext(browser: Browser): Promise<void> {
  await shared.get(browser)?.close()
  shared.delete(browser)
}
