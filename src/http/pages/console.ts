import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { immutable, serveAssets } from '../files.ts'
import { built, escapeHtml, frame, pageHeaders } from './frame.ts'

/**
 * `GET /console`: a page to use the service in a browser. Its scripts and styles have the hash of their content in their
 * names, so that browsers may keep them. `settings` are those of `console/src/settings.ts`: what the console cannot find out
 * by itself. Everybody can read them.
 */
export function serveConsole(server: FastifyInstance, settings: object): void {
  const page = async () => {
    const head = await readFile(join(built, 'index.html'), 'utf8') // only the tags that load the scripts and styles
    const body = `<div id="app" data-settings="${escapeHtml(JSON.stringify(settings))}"></div>
<noscript>The console needs JavaScript.</noscript>`
    return frame({ title: 'Duet console', root: '', place: 'console', head, body })
  }
  serveAssets(server, { console: page }, pageHeaders)
  // The addresses in the page are relative, because a gateway may publish the service below a prefix. So is this one.
  server.get('/console/', (_request, reply) => reply.header('cache-control', 'no-cache').redirect('../console', 308))
  const files = readdirSync(join(built, 'console')).map(file => `console/${file}`)
  serveAssets(server, Object.fromEntries(files.map(file => [file, () => readFile(join(built, file))])), immutable)
}
