import { statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { type Config, ConfigError } from '../config.ts'
import { demoLogin } from '../core/demo.ts'
import { serveGraphiqlAssets } from '../graphql/http/graphiql/page.ts'
import type { TrustedProxies } from '../http/client-address.ts'
import { serveAssets, servePublicFiles } from '../http/files.ts'
import { serveConsole } from '../http/pages/console.ts'
import { serveDocs } from '../http/pages/docs.ts'
import { servePageAssets, showMissing } from '../http/pages/frame.ts'
import { serveHome } from '../http/pages/home.ts'

interface Parts {
  readonly proxies: TrustedProxies
  readonly demoLoginWorks: boolean
  readonly publicFolder: string | undefined
}

/** Serves the home page, the OpenAPI document and the files of `/app/`, and if they are on the pages for browsers. */
export async function serveForDevelopers(server: FastifyInstance, config: Config, parts: Parts): Promise<void> {
  const { proxies, demoLoginWorks, publicFolder } = parts
  const shownLogin = demoLoginWorks ? demoLogin : undefined
  serveHome(server, { ...config, demoLogin: shownLogin, proxies })
  serveAssets(server, { 'openapi.json': () => readFile(openApi) })
  if (publicFolder !== undefined) await servePublicFiles(server, publicFolder)
  // So that a page can import it without a build.
  if (publicFolder !== undefined || config.explorers) serveAssets(server, { 'client.js': () => readFile(clientScript) })
  if (!config.explorers) return
  servePageAssets(server)
  showMissing(server)
  serveDocs(server)
  serveGraphiqlAssets(server)
  const metrics = config.metricsToken !== undefined ? 'token' : config.metricsOpen ? 'open' : 'off'
  const { accessPolicy: policy, signUp } = config
  const { code, digits } = config.currency
  const currency = code === undefined ? undefined : { code, digits }
  serveConsole(server, { metrics, policy, signUp, currency, demoLogin: shownLogin })
}

const project = join(import.meta.dirname, '..', '..')
const openApi = join(project, 'api', 'openapi.json')
const clientScript = join(project, 'client', 'dist', 'duet-client.js')

export function findPublicFolder({ publicDir }: Config): string | undefined {
  const found = statSync(publicDir, { throwIfNoEntry: false })
  if (found === undefined) return undefined
  if (found.isDirectory()) return resolve(publicDir)
  throw new ConfigError('PUBLIC_DIR: is not a folder')
}
