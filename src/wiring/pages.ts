import type { FastifyInstance } from 'fastify'
import type { Config } from '../config.ts'
import { demoLogin } from '../core/demo.ts'
import { serveGraphiqlAssets } from '../graphql/http/graphiql/page.ts'
import type { TrustedProxies } from '../server/client-address.ts'
import { serveClientScript } from '../server/client-script.ts'
import { serveConsole } from '../server/console.ts'
import { serveDocument } from '../server/openapi/document.ts'
import { serveHome } from '../server/pages/home.ts'
import { servePages } from '../server/pages/serve.ts'

export interface PageParts {
  readonly proxies: TrustedProxies
  readonly demoLoginWorks: boolean
  /** Describes the routes that exist when it is called. */
  readonly openApiDocument: () => object
}

/** Serves the home page and the OpenAPI document, and if they are on the pages for browsers. */
export function serveForDevelopers(server: FastifyInstance, config: Config, parts: PageParts): void {
  const { proxies, demoLoginWorks } = parts
  const shownLogin = demoLoginWorks ? demoLogin : undefined
  serveHome(server, {
    withPage: config.explorers,
    engine: config.database.kind,
    demoLogin: shownLogin,
    isOpen: config.accessPolicy === 'open',
    linkPrefix: config.linkPrefix,
    proxies,
  })
  const document = parts.openApiDocument()
  serveDocument(server, document)
  if (!config.explorers) return
  servePages(server, document)
  serveClientScript(server)
  serveGraphiqlAssets(server)
  const metrics = config.metricsToken !== undefined ? 'token' : config.metricsOpen ? 'open' : 'off'
  serveConsole(server, { metrics, demoLogin: shownLogin })
}
