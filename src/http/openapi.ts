import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { once } from './files.ts'

/** `api/openapi.yaml`. It is read at its first use, because many processes never show it. */
export const openApiDocument = once(async () => {
  const [{ load }, text] = await Promise.all([import('js-yaml'), readFile(file, 'utf8')])
  return load(text) as object
})

const file = join(import.meta.dirname, '..', '..', 'api', 'openapi.yaml')
