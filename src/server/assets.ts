import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gunzip, gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** A file for browsers, in its compressed forms. */
export interface Compressed {
  readonly gzip: Uint8Array
  readonly br: Uint8Array
  /** Identifies the content. */
  readonly hash: string
}

export interface Asset {
  /** Relative to the root. It contains a version if `immutable`. */
  readonly address: string
  readonly type: string
  /** Whether the content at this address never changes. If not, browsers check it each time. */
  readonly immutable: boolean
  readonly load: () => Promise<Compressed>
}

/** Compresses a file outside of this thread. */
export async function compress(content: string | Uint8Array): Promise<Compressed> {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 5 } // better ones take many times as long
  const [zipped, br] = await Promise.all([promisify(gzip)(content), promisify(brotliCompress)(content, { params })])
  return { gzip: zipped, br, hash: createHash('sha256').update(content).digest('base64url').slice(0, 22) }
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
 * Serves files for browsers. Few processes need them, so each is compressed at its first request, and only its
 * compressed forms are kept.
 */
export function serveAssets(server: FastifyInstance, assets: readonly Asset[]): void {
  for (const { address, type, immutable, load } of assets) {
    const loaded = once(load)
    const caching = immutable ? 'public, max-age=31536000, immutable' : 'no-cache'
    server.get(`/${address}`, async (request, reply) => {
      reply.header('cache-control', caching)
      return sendCompressed(await loaded(), type, request, reply)
    })
  }
}

/** Sends the form that the client accepts, or 304 if the client has it already. */
export async function sendCompressed(
  file: Compressed,
  type: string,
  { headers }: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { gzip: zipped, br, hash } = file
  const accepted = acceptedEncodings(headers['accept-encoding'])
  const encoding = accepted.has('br') ? 'br' : accepted.has('gzip') ? 'gzip' : undefined
  const tag = `"${hash}${encoding === undefined ? '' : `-${encoding}`}"`
  const known = headers['if-none-match']?.split(',').map(each => each.trim().replace(/^W\//, ''))
  reply.header('etag', tag).header('vary', `${reply.getHeader('vary') ?? 'Origin'}, Accept-Encoding`)
  if (known?.includes(tag)) return reply.code(304).send()
  reply.type(type)
  if (encoding === undefined) return reply.send(await plain(file))
  return reply.header('content-encoding', encoding).send(Buffer.from(encoding === 'br' ? br : zipped))
}

/** The content itself, for the few clients that accept no compression. All of them share it, however slowly they read. */
function plain(file: Compressed): Promise<Buffer> {
  let load = contents.get(file)
  if (load === undefined) {
    load = once(() => promisify(gunzip)(file.gzip))
    contents.set(file, load)
  }
  return load()
}

const contents = new WeakMap<Compressed, () => Promise<Buffer>>()

function acceptedEncodings(header = ''): ReadonlySet<string> {
  const ranges = String(header).split(',')
  const accepted = ranges.filter(range => !/;\s*q=0(\.0*)?\s*$/i.test(range))
  return new Set(accepted.map(range => range.split(';')[0]?.trim().toLowerCase() ?? ''))
}
