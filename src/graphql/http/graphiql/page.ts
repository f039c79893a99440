import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Asset, type Compressed, compress, once, sendCompressed, serveAssets } from '../../../server/assets.ts'
import { pageHeaders } from '../../../server/page-headers.ts'

const bundlePath = fileURLToPath(import.meta.resolve('@graphql-yoga/render-graphiql'))
const { version } = JSON.parse(readFileSync(join(bundlePath, '..', '..', 'package.json'), 'utf8')) as {
  version: string
}

const types = { html: 'text/html; charset=utf-8', css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8' }

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
  return sendCompressed(await compressedPage(), types.html, request, reply)
}

/** Serves the files of the page. */
export function serveGraphiqlAssets(server: FastifyInstance): void {
  const bundle = once(compressBundle)
  const ofBundle = Object.entries(parts).map(([name, address]): Asset => {
    const load = async () => (await bundle())[name] ?? Promise.reject(new Error(`GraphiQL has no part ${name}`))
    return { address, type: name === 'css' ? types.css : types.js, immutable: true, load }
  })
  const own = (['css', 'js'] as const).map((type): Asset => {
    const file = { css: 'page.css', js: 'start.js' }[type]
    const load = async () => compress(await readFile(join(import.meta.dirname, file)))
    return { address: `graphiql/${file}`, type: types[type], immutable: false, load }
  })
  serveAssets(server, [...ofBundle, ...own])
}

function compressBundle(): Promise<Readonly<Record<string, Compressed>>> {
  const { promise, resolve, reject } = Promise.withResolvers<Readonly<Record<string, Compressed>>>()
  const worker = new Worker(new URL('./compress-bundle.ts', import.meta.url))
  worker.unref() // a shutdown does not wait for it
  worker.once('message', resolve).once('error', reject)
  worker.once('exit', code => reject(new Error(`GraphiQL could not be compressed: the thread ended with ${code}`)))
  return promise
}
