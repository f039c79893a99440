import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import { compress, serveAssets } from '../assets.ts'
import { pageHeaders } from '../page-headers.ts'

const folder = fileURLToPath(new URL('.', import.meta.resolve('swagger-ui-dist/package.json')))
const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }
const scriptType = 'text/javascript; charset=utf-8'

/** The files that the page loads from the package. Their URLs contain the version, so that browsers may cache them. */
const assets = [
  { address: `docs/swagger-ui-${manifest.version}.css`, file: 'swagger-ui.css', type: 'text/css; charset=utf-8' },
  { address: `docs/swagger-ui-${manifest.version}.js`, file: 'swagger-ui-bundle.js', type: scriptType },
] as const

const starter = 'docs/start.js'

// The URLs are relative, because a gateway may publish the service below a prefix.
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Duet: the HTTP interface</title>
<link rel="icon" href="../favicon.ico">
<link rel="stylesheet" href="../${assets[0].address}">
</head>
<body>
<nav class="swagger-ui" aria-label="Places"><p class="wrapper"><a class="link" href="../docs">Documentation</a></p></nav>
<div id="docs"></div>
<noscript>This page needs JavaScript. <a href="../openapi.json">openapi.json</a> holds the same as data.</noscript>
<script src="../${assets[1].address}"></script>
<script src="../${starter}"></script>
</body>
</html>
`

// By default `validatorUrl` sends the URL of the document to a third party.
const start = `SwaggerUIBundle({ url: '../openapi.json', dom_id: '#docs', deepLinking: true, validatorUrl: null })
`

/** Nothing is loaded from other hosts. The images in the style sheet are `data:` URLs. */
const headers = pageHeaders("script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'")

/** `GET /docs/api` shows `/openapi.json` in Swagger UI. All files of Swagger UI are served from here. */
export function serveApiReference(server: FastifyInstance): void {
  server.get('/docs/api', (_request, reply) => reply.headers(headers).type('text/html; charset=utf-8').send(page))
  server.get(`/${starter}`, (_request, reply) => reply.header('cache-control', 'no-cache').type(scriptType).send(start))
  serveAssets(
    server,
    assets.map(({ address, file, type }) => {
      const load = async () => compress(await readFile(join(folder, file)))
      return { address, type, immutable: true, load }
    }),
  )
}
