import { createHash } from 'node:crypto'
import type { Stats } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { extname, sep } from 'node:path'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../core/errors.ts'
import { answerError, sendError } from './errors.ts'

type Content = string | Uint8Array

/** A function that loads something at its first call, and again only if that failed. */
export function once<Loaded>(load: () => Promise<Loaded>): () => Promise<Loaded> {
  let loaded: Promise<Loaded> | undefined
  return () => {
    loaded ??= load().catch(error => {
      loaded = undefined
      throw error
    })
    return loaded
  }
}

/**
 * Serves files for browsers, by their addresses relative to the root. An address without an extension is that of a page.
 */
export function serveAssets(
  server: FastifyInstance,
  files: Readonly<Record<string, () => Promise<Content>>>,
  headers: Readonly<Record<string, string>> = { 'cache-control': 'no-cache' },
): void {
  for (const [address, load] of Object.entries(files)) {
    const send = asset(load, extname(address))
    server.get(`/${address}`, (request, reply) => send(request, reply.headers(headers)))
  }
}

/** For what never changes at its address, because that contains a version. Anything else browsers check each time. */
export const immutable = { 'cache-control': 'public, max-age=31536000, immutable' }

/**
 * A file for browsers, with the type of its extension. Few processes need it, so it is loaded and compressed at its first
 * request, outside of this thread, and only its compressed form is kept. It is sent compressed if the client accepts
 * that, and 304 if it has it already.
 */
export function asset(load: () => Promise<Content>, extension: string) {
  const file = once(async () => {
    const content = await load()
    const hash = createHash('sha256').update(content).digest('base64url').slice(0, 22)
    return { zipped: await promisify(gzip)(content, { level: 9 }), hash }
  })
  return async ({ headers }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { zipped, hash } = await file()
    const isZipped = acceptsGzip.test(headers['accept-encoding']?.toString() ?? '')
    const tag = `"${hash}${isZipped ? '-gzip' : ''}"`
    const known = headers['if-none-match']?.split(',').map(each => each.trim().replace(/^W\//, ''))
    reply.header('etag', tag).header('vary', `${reply.getHeader('vary') ?? 'Origin'}, Accept-Encoding`)
    if (known?.includes(tag)) return reply.code(304).send()
    reply.type(types[extension || '.html'] ?? 'text/plain; charset=utf-8')
    if (!isZipped) return reply.send(await promisify(gunzip)(zipped))
    return reply.header('content-encoding', 'gzip').send(zipped)
  }
}

const acceptsGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
}

/** `GET /app/…`: the files of a folder, for pages of the operator's own. Files whose names begin with a dot are absent. */
export async function servePublicFiles(server: FastifyInstance, folder: string): Promise<void> {
  const { fastifyStatic } = await import('@fastify/static')
  server.setNotFoundHandler((_request, reply) => sendError(reply, 404, 'Not found'))
  await server.register(async scope => {
    scope.setErrorHandler(answerFileError)
    await scope.register(fastifyStatic, {
      root: folder,
      prefix: '/app/',
      redirect: true, // from the name of a folder to the folder, where relative links lead to its files
      dotfiles: 'ignore',
      decorateReply: false,
      cacheControl: false,
      setHeaders: reply => reply.header('cache-control', 'no-cache'),
      onFile: (path, stat) => refuseOthers(folder, path, stat),
    })
  })
  // Relative, because a gateway may publish the service below a prefix.
  server.get('/app', (_request, reply) => reply.header('cache-control', 'no-cache').redirect('app/', 308))
}

/**
 * A symbolic link must not publish what is outside of the folder. Opening a named pipe would take one of Node's four
 * threads for files and passwords, for as long as nobody writes to the pipe.
 */
async function refuseOthers(folder: string, path: string, stat: Stats): Promise<void> {
  const [inside, file] = await Promise.all([realpath(folder), realpath(path)])
  if (!stat.isFile() || !file.startsWith(inside + sep)) throw new AppError('not-found', 'Not found')
}

/** A path that names no file of the folder, however it is written, is absent. */
function answerFileError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { statusCode = 500, code } = error
  if (statusCode >= 500 && code !== 'ELOOP') return answerError(error, request, reply)
  if (statusCode === 412) return sendError(reply, 412, 'The file has changed')
  if (statusCode === 416) return sendError(reply, 416, 'The file is shorter')
  return sendError(reply, 404, 'Not found')
}
