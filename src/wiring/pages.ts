import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { type Config, ConfigError } from '../config.ts'
import { demoLogin } from '../core/demo.ts'
import { serveGraphiqlAssets } from '../graphql/http/graphiql/page.ts'
import type { TrustedProxies } from '../server/client-address.ts'
import { serveClientScript } from '../server/client-script.ts'
import { serveConsole } from '../server/console.ts'
import { serveDocument } from '../server/openapi.ts'
import { serveHome } from '../server/pages/home.ts'
import { servePages } from '../server/pages/serve.ts'
import { servePublicFiles } from '../server/public-files.ts'

export interface PageParts {
  readonly proxies: TrustedProxies
  readonly demoLoginWorks: boolean
  /** Where the files of `/app/` are. Missing if there are none. */
  readonly publicFolder: string | undefined
}

/** Serves the home page, the OpenAPI document and the files of `/app/`, and if they are on the pages for browsers. */
export async function serveForDevelopers(server: FastifyInstance, config: Config, parts: PageParts): Promise<void> {
  const { proxies, demoLoginWorks, publicFolder } = parts
  const shownLogin = demoLoginWorks ? demoLogin : undefined
  serveHome(server, {
    withPage: config.explorers,
    engine: config.database.kind,
    demoLogin: shownLogin,
    isOpen: config.accessPolicy === 'open',
    linkPrefix: config.linkPrefix,
    proxies,
  })
  serveDocument(server)
  if (publicFolder !== undefined) await servePublicFiles(server, publicFolder)
  if (publicFolder !== undefined || config.explorers) serveClientScript(server)
  if (!config.explorers) return
  servePages(server)
  serveGraphiqlAssets(server)
  const metrics = config.metricsToken !== undefined ? 'token' : config.metricsOpen ? 'open' : 'off'
  serveConsole(server, { metrics, demoLogin: shownLogin })
}

/** The folder of `PUBLIC_DIR`, if there is one. */
export function findPublicFolder({ publicDir }: Config): string | undefined {
  const found = statSync(publicDir, { throwIfNoEntry: false })
  if (found === undefined) return undefined
  if (found.isDirectory()) return resolve(publicDir)
  throw new ConfigError('PUBLIC_DIR: is not a folder')
}
