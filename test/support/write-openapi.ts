import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { startTestApp } from './app.ts'
import { ask } from './http.ts'

/** The path of the committed copy of the document. */
export const openApiFile = join(import.meta.dirname, '..', '..', 'api', 'openapi.json')

/** The document as the app serves it, in the form of the committed copy. */
export async function servedDocument(): Promise<string> {
  await using app = await startTestApp({ DATABASE_URL: 'sqlite::memory:' }) // a run of tests has a database to copy, this has none
  const { body } = await ask(`${app.url}/openapi.json`)
  return `${JSON.stringify(JSON.parse(body), null, 2)}\n`
}

if (import.meta.main) {
  mkdirSync(dirname(openApiFile), { recursive: true })
  writeFileSync(openApiFile, await servedDocument())
}
