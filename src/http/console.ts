import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import { immutable, pageHeaders, serveAssets } from './assets.ts'
import { escapeHtml } from './pages/frame.ts'

/** The committed build of `console/`. `npm run build` writes it. */
const built = fileURLToPath(new URL('../../console/dist', import.meta.url))

/** Nothing is loaded from other hosts, and nothing inline is run. `'self'` includes sockets to this host. */
const headers = pageHeaders(
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
)

/** What the console cannot find out by itself. Everybody can read it. */
export interface ConsoleSettings {
  /** Only if the demo data exists and its public login still works. */
  readonly demoLogin?: { readonly email: string; readonly password: string } | undefined
  /** Whether `/metrics` answers everybody, only those with its token, or nobody. */
  readonly metrics: 'open' | 'token' | 'off'
}

/**
 * `GET /console`: a page to use the service in a browser. Its scripts and styles have the hash of their content in their
 * names, so that browsers may keep them.
 */
export function serveConsole(server: FastifyInstance, settings: ConsoleSettings): void {
  const page = async () => {
    const html = await readFile(join(built, 'index.html'), 'utf8')
    return html.replace('data-settings=""', () => `data-settings="${escapeHtml(JSON.stringify(settings))}"`)
  }
  serveAssets(server, { console: page }, headers)
  // The addresses in the page are relative, because a gateway may publish the service below a prefix. So is this one.
  server.get('/console/', (_request, reply) => reply.header('cache-control', 'no-cache').redirect('../console', 308))
  const files = readdirSync(join(built, 'console')).map(file => `console/${file}`)
  const loaders = files.map(file => [file, () => readFile(join(built, file))] as const)
  serveAssets(server, Object.fromEntries(loaders), immutable)
}
