import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { serveAssets } from './assets.ts'

const file = join(import.meta.dirname, '..', '..', 'client', 'dist', 'duet-client.js')

/** `GET /client.js` is the typed client, so that a page can import it without a build. */
export function serveClientScript(server: FastifyInstance): void {
  serveAssets(server, { 'client.js': () => readFile(file) })
}
