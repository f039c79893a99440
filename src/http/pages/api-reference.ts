import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import { immutable, pageHeaders, serveAssets } from '../assets.ts'

const folder = fileURLToPath(new URL('.', import.meta.resolve('swagger-ui-dist/package.json')))
const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }
/** The files that the page loads from the package. Their URLs contain the version, so that browsers may cache them. */
const assets = {
  css: `docs/swagger-ui-${manifest.version}.css`,
  js: `docs/swagger-ui-${manifest.version}.js`,
} as const

const starter = 'docs/start.js'

// The URLs are relative, because a gateway may publish the service below a prefix.
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Duet: the HTTP interface</title>
<link rel="icon" href="../favicon.ico">
<link rel="stylesheet" href="../${assets.css}">
</head>
<body>
<nav class="swagger-ui" aria-label="Places"><p class="wrapper"><a class="link" href="../docs">Documentation</a></p></nav>
<div id="docs"></div>
<noscript>This page needs JavaScript. <a href="../openapi.json">openapi.json</a> holds the same as data.</noscript>
<script src="../${assets.js}"></script>
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
  serveAssets(server, { 'docs/api': async () => page }, headers)
  serveAssets(server, { [starter]: async () => start })
  const load = (file: string) => () => readFile(join(folder, file))
  serveAssets(server, { [assets.css]: load('swagger-ui.css'), [assets.js]: load('swagger-ui-bundle.js') }, immutable)
}
