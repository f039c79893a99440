import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { immutable, serveAssets } from '../files.ts'
import { built, escapeHtml, frame, pageHeaders } from './frame.ts'

/** What the console cannot find out by itself. Everybody can read it. */
export interface ConsoleSettings {
  /** Only if the demo data exists and its public login still works. */
  readonly demoLogin?: { readonly email: string; readonly password: string } | undefined
  /** Whether `/metrics` answers everybody, only those with its token, or nobody. */
  readonly metrics: 'open' | 'token' | 'off'
  readonly policy: 'open' | 'enforced'
  /** Who may create accounts: everybody, or admins. */
  readonly signUp: 'open' | 'closed'
  /** How amounts are shown. The service itself knows only their numbers. */
  readonly currency?: { readonly code: string; readonly digits: number } | undefined
}

/**
 * `GET /console`: a page to use the service in a browser. Its scripts and styles have the hash of their content in their
 * names, so that browsers may keep them.
 */
export function serveConsole(server: FastifyInstance, settings: ConsoleSettings): void {
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
