import { createHash } from 'node:crypto'
import { extname } from 'node:path'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** A file for browsers. Only its compressed form is kept. */
export interface Compressed {
  readonly zipped: Uint8Array
  /** Identifies the content. */
  readonly hash: string
}

type Content = string | Uint8Array

/** Compresses a file outside of this thread. */
export async function compress(content: Content): Promise<Compressed> {
  const hash = createHash('sha256').update(content).digest('base64url').slice(0, 22)
  return { zipped: await promisify(gzip)(content), hash }
}

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
 * Serves files for browsers, by their addresses relative to the root. Few processes need them, so each is loaded and
 * compressed at its first request. An address without an extension is that of a page.
 */
export function serveAssets(
  server: FastifyInstance,
  files: Readonly<Record<string, () => Promise<Content>>>,
  headers: Readonly<Record<string, string>> = { 'cache-control': 'no-cache' },
): void {
  for (const [address, load] of Object.entries(files)) {
    const file = once(async () => compress(await load()))
    server.get(`/${address}`, async (request, reply) => {
      reply.headers(headers)
      return sendCompressed(await file(), extname(address) || '.html', request, reply)
    })
  }
}

/** For what never changes at its address, because that contains a version. Anything else browsers check each time. */
export const immutable = { 'cache-control': 'public, max-age=31536000, immutable' }

/** Sends a file with the type of its extension, compressed if the client accepts that, or 304 if it has it already. */
export async function sendCompressed(
  { zipped, hash }: Compressed,
  extension: string,
  { headers }: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const isZipped = acceptsGzip.test(headers['accept-encoding']?.toString() ?? '')
  const tag = `"${hash}${isZipped ? '-gzip' : ''}"`
  const known = headers['if-none-match']?.split(',').map(each => each.trim().replace(/^W\//, ''))
  reply.header('etag', tag).header('vary', `${reply.getHeader('vary') ?? 'Origin'}, Accept-Encoding`)
  if (known?.includes(tag)) return reply.code(304).send()
  reply.type(types[extension] ?? 'text/plain; charset=utf-8')
  if (!isZipped) return reply.send(await promisify(gunzip)(zipped))
  return reply.header('content-encoding', 'gzip').send(Buffer.from(zipped))
}

const acceptsGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
}

/** The headers of a page that may load what `sources` says, and nothing else. No other site may show it in a frame. */
export function pageHeaders(...sources: readonly string[]): Record<string, string> {
  const always = ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
  return {
    'content-security-policy': ["default-src 'none'", ...sources, ...always].join('; '),
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  }
}
