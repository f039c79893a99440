import { after } from 'node:test'
import type { Browser } from 'playwright-core'
import { closeSharedContext, startBrowser } from './browser.ts'

let started: Promise<Browser> | undefined

after(async () => (await started)?.close())

/** The browser of all test files of this process. It ends after the last of them. */
export function sharedBrowser(): Promise<Browser> {
  started ??= startBrowser()
  return started
}

/** The next test file begins with new storages. */
export async function leaveBrowser(): Promise<void> {
  if (started !== undefined) await closeSharedContext(await started)
}
