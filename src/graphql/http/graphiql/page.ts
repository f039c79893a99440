import events from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import manifest from '@graphql-yoga/render-graphiql/package.json' with { type: 'json' }
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { asset, immutable, once, serveAssets } from '../../../http/files.ts'
import { frame, headersFor, sharedStyles } from '../../../http/pages/frame.ts'

/** The parts of GraphiQL's bundle. Their URLs contain its version, so that browsers may cache them. */
const { version } = manifest
const parts = {
  css: `graphiql/graphiql-${version}.css`,
  js: `graphiql/graphiql-${version}.js`,
  editor: `graphiql/editor-${version}.js`,
  json: `graphiql/json-${version}.js`,
  graphql: `graphiql/graphql-${version}.js`,
} as const

// The URLs are relative, because a gateway may publish the service below a prefix.
const head = `<link rel="stylesheet" href="${parts.css}">
<link rel="stylesheet" href="graphiql/page.css">
<script src="${parts.js}" defer></script>
<script type="module" src="graphiql/start.js"></script>`
const body = `<main id="content" data-editor="${parts.editor}" data-json="${parts.json}" data-graphql="${parts.graphql}"></main>
<noscript>This page needs JavaScript.</noscript>`
const page = frame({ title: 'GraphiQL · Duet', root: '', place: 'graphql', head, body })

/** Nothing is on other hosts. The page's scripts create styles, and fonts and images are `data:` URLs. */
const headers = headersFor(
  "script-src 'self'",
  "worker-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  'font-src data:',
  "connect-src 'self'",
)

const sendPage = asset(async () => page, '.html')

/** The GraphiQL page, for trying GraphQL in a browser. It loads nothing from other hosts. */
export function showGraphiql(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  return sendPage(request, reply.headers(headers).header('vary', 'Origin, Accept'))
}

export function serveGraphiqlAssets(server: FastifyInstance): void {
  const bundle = once(loadBundle)
  const ofBundle = Object.entries(parts).map(([name, address]) => [address, async () => (await bundle())[name] ?? ''])
  serveAssets(server, Object.fromEntries(ofBundle), immutable)
  const own = (name: string) => readFile(join(import.meta.dirname, name), 'utf8')
  const style = async () => {
    const [theme, controls] = await Promise.all(sharedStyles.map(file => readFile(file, 'utf8')))
    return `${theme}@scope (.top) {${controls}}${await own('page.css')}` // GraphiQL has its own buttons
  }
  serveAssets(server, { 'graphiql/page.css': style, 'graphiql/start.js': () => own('start.js') })
}

async function loadBundle(): Promise<Readonly<Record<string, string>>> {
  const worker = new Worker(new URL('./load-bundle.ts', import.meta.url))
  worker.unref() // a shutdown does not wait for it
  const [bundle] = await events.once(worker, 'message')
  return bundle
}
