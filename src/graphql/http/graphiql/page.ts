import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { compress, immutable, once, pageHeaders, sendCompressed, serveAssets } from '../../../http/assets.ts'

const bundlePath = fileURLToPath(import.meta.resolve('@graphql-yoga/render-graphiql'))
const { version } = JSON.parse(readFileSync(join(bundlePath, '..', '..', 'package.json'), 'utf8')) as {
  version: string
}

/** The parts of GraphiQL's bundle. Their URLs contain its version, so that browsers may cache them. */
const parts = {
  css: `graphiql/graphiql-${version}.css`,
  js: `graphiql/graphiql-${version}.js`,
  editor: `graphiql/editor-${version}.js`,
  json: `graphiql/json-${version}.js`,
  graphql: `graphiql/graphql-${version}.js`,
} as const

// The URLs are relative, because a gateway may publish the service below a prefix.
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Duet: GraphQL</title>
<link rel="icon" href="favicon.ico">
<link rel="stylesheet" href="${parts.css}">
<link rel="stylesheet" href="graphiql/page.css">
</head>
<body class="no-focus-outline">
<form id="sign-in">
<a href="./">Duet</a>
<input name="email" type="email" placeholder="E-mail" aria-label="E-mail" autocomplete="username" required>
<input name="password" type="password" placeholder="Password" aria-label="Password" autocomplete="current-password" required>
<button>Sign in</button>
<output></output>
</form>
<div id="root" data-editor="${parts.editor}" data-json="${parts.json}" data-graphql="${parts.graphql}"></div>
<noscript>This page needs JavaScript.</noscript>
<script src="${parts.js}"></script>
<script src="graphiql/start.js"></script>
</body>
</html>
`

/** Only images may be on other hosts. The page's scripts create styles, and fonts and images are `data:` URLs. */
const headers = pageHeaders(
  "script-src 'self'",
  "worker-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: https:",
  'font-src data:',
  "connect-src 'self' ws: wss:",
)

const compressedPage = once(() => compress(page))

/** The GraphiQL page, for trying GraphQL in a browser. It loads nothing from other hosts. */
export async function showGraphiql(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  reply.headers(headers).header('vary', 'Origin, Accept')
  return sendCompressed(await compressedPage(), '.html', request, reply)
}

/** Serves the files of the page. */
export function serveGraphiqlAssets(server: FastifyInstance): void {
  const bundle = once(loadBundle)
  const ofBundle = Object.entries(parts).map(([name, address]) => {
    const load = async () => (await bundle())[name] ?? Promise.reject(new Error(`GraphiQL has no part ${name}`))
    return [address, load] as const
  })
  serveAssets(server, Object.fromEntries(ofBundle), immutable)
  const own = (name: string) => () => readFile(join(import.meta.dirname, name))
  serveAssets(server, { 'graphiql/page.css': own('page.css'), 'graphiql/start.js': own('start.js') })
}

function loadBundle(): Promise<Readonly<Record<string, string>>> {
  const { promise, resolve, reject } = Promise.withResolvers<Readonly<Record<string, string>>>()
  const worker = new Worker(new URL('./load-bundle.ts', import.meta.url))
  worker.unref() // a shutdown does not wait for it
  worker.once('message', resolve).once('error', reject)
  worker.once('exit', code => reject(new Error(`GraphiQL could not be loaded: the thread ended with ${code}`)))
  return promise
}
