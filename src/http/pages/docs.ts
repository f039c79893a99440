import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { AppError } from '../../core/errors.ts'
import { asset, serveAssets } from '../files.ts'
import { pageHeaders } from './frame.ts'

const project = join(import.meta.dirname, '..', '..', '..')
const images = join(project, 'docs', 'images')

/** What `npm run build` makes of the guides and of `api/openapi.yaml`. It is committed. */
const rendered = join(project, 'docs', 'dist')

/** `/docs` lists the documentation, `/docs/…` shows each guide, `/docs/api` every operation of the HTTP interface. */
export function serveDocs(server: FastifyInstance): void {
  /** The examples have the port of this service. */
  const read = (file: string) => async () => {
    const { port } = server.server.address() as AddressInfo
    const text = await readFile(join(rendered, file), 'utf8')
    return text.replaceAll('127.0.0.1:4000', `127.0.0.1:${port}`)
  }
  serveAssets(server, { docs: read('index.html'), 'docs/api': read('api.html') }, pageHeaders)
  serveAssets(server, {
    'docs/search.json': read('search.json'),
    'docs/schema.graphql': () => readFile(join(project, 'api', 'schema.graphql')),
  })
  const guides = filesIn(join(rendered, 'guides')).map(
    file => [file.replace(/\.html$/, ''), asset(read(`guides/${file}`), '.html')] as const,
  )
  const shown = filesIn(images).map(
    file => [`images/${file}`, asset(() => readFile(join(images, file)), extname(file))] as const,
  )
  const files = new Map([...guides, ...shown])
  server.get('/docs/*', (request, reply) => {
    const { '*': path } = request.params as { readonly '*': string }
    if (path === '') return reply.redirect('../docs', 308)
    const send = files.get(path)
    if (send === undefined) throw new AppError('not-found', 'Not found')
    return send(request, reply.headers(pageHeaders))
  })
}

/** The files of a folder and of the folders in it, by their paths. */
function filesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(path => extname(path) !== '')
}
