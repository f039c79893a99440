import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

/** The script of axe-core, which finds accessibility problems. */
export const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Finding {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

/** The problems in a part of a page that has the script. */
export async function findings(page: Page, part = 'html', options: object = {}): Promise<readonly string[]> {
  const { violations } = await page.evaluate<{ violations: readonly Finding[] }>(
    `axe.run('${part}', ${JSON.stringify({ resultTypes: ['violations'], ...options })})`,
  )
  return violations.flatMap(({ id, impact, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${impact} ${id}: ${html} ${failureSummary}`),
  )
}
