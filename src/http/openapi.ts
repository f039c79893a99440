import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { once } from './files.ts'

/** `api/openapi.yaml`. It is read at its first use, because many processes never show it. */
export const openApiDocument = once(async () => {
  const [{ load }, text] = await Promise.all([import('js-yaml'), readFile(file, 'utf8')])
  return load(text) as object
})

const file = join(import.meta.dirname, '..', '..', 'api', 'openapi.yaml')

/** `GET /openapi.json`. */
export function serveDocument(server: FastifyInstance): void {
  const text = once(async () => JSON.stringify(await openApiDocument()))
  server.get('/openapi.json', async (_request, reply) => {
    reply.header('cache-control', 'no-cache').type('application/json; charset=utf-8')
    return text()
  })
}
