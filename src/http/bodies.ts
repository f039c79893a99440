import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { errorCodes, type FastifyInstance, type FastifyRequest } from 'fastify'
import { badInput } from '../core/input.ts'
import { Queue } from '../core/queue.ts'

/**
 * Request bodies must be JSON in UTF-8: any other type gets 415, any other encoding or invalid syntax gets 400. Costs
 * that do not depend on the size are bounded too. A body in very many pieces is refused like one that is too large: each
 * piece takes memory and time of its own. A connection whose request was answered before its body has ended is closed
 * soon, so that a client cannot go on sending for nothing.
 */
export function acceptBodies(server: FastifyInstance): void {
  server.removeAllContentTypeParsers()
  // Both, because Fastify finds a named type faster. `jsonOf` checks the type again, because Fastify ignores parameters
  // that it cannot parse.
  server.addContentTypeParser(['application/json', '*'], { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    request.waits?.arrived()
    const parsed = () => (body.length === 0 ? undefined : jsonOf(body, request.headers['content-type']))
    if (body.length < longBody) done(null, parsed())
    else longBodies.run(() => turn().then(parsed)).then(value => done(null, value), done)
  })
  handOverNextBodies(server.server)
  server.addHook('preParsing', (request, _reply, payload, next) => {
    // A body of known length has at most as many pieces as bytes.
    if (hasBody(request, mostPieces)) {
      let pieces = 0
      payload.on('data', () => {
        // The parser compares this with the limit of the body's size.
        if (++pieces > mostPieces) payload.receivedEncodedLength = Number.POSITIVE_INFINITY
      })
    }
    next(null, payload)
  })
  server.addHook('onResponse', (request, _reply, next) => {
    if (!request.raw.complete && hasBody(request)) {
      ignoreBody(request.raw)
      closeSoon(request)
    }
    next()
  })
}

/**
 * A field named `__proto__` becomes an ordinary field, which no code reads: `JSON.parse` sets no prototype. This is
 * safe as long as code reads fields by name or spreads the object, and never copies it by assignment.
 */
function jsonOf(body: Buffer, type = ''): unknown {
  if (type !== 'application/json' && !jsonType.test(type)) throw new errorCodes.FST_ERR_CTP_INVALID_MEDIA_TYPE()
  if (!isUtf8(body)) throw badInput('Request body is not valid UTF-8')
  if (hasMoreValues(body, mostValues)) throw badInput(`Request body has more than ${mostValues} values`)
  try {
    const text = body.toString()
    return JSON.parse(text.startsWith('\ufeff') ? text.slice(1) : text) // without a byte order mark
  } catch {
    throw new errorCodes.FST_ERR_CTP_INVALID_JSON_BODY()
  }
}

// Parameters are allowed, but the only charset of JSON is UTF-8.
const parameter = String.raw`;\s*(?:charset=(?:utf-?8|"utf-?8")|(?!charset=)[\w.-]+=(?:[\w.+-]+|"[^"\\]*"))\s*`
const jsonType = new RegExp(String.raw`^application/json\s*(?:${parameter})*;?$`, 'i')

/** Far more than any request needs. A body of 1 MiB can have half a million values, which take 50 ms to parse. */
export const mostValues = 20_000

/**
 * Whether the text of JSON has more values than this. It counts the characters that come before a value, outside of
 * strings. Parsing many small values takes much longer than parsing long strings.
 */
export function hasMoreValues(json: Buffer, most: number): boolean {
  if (json.length <= most) return false
  let values = 0
  let inString = false
  for (let at = 0; at < json.length; at++) {
    const character = json[at]
    if (character === quote) inString = !inString
    else if (inString) at += character === backslash ? 1 : 0
    else if (character === comma || character === bracket || character === brace) {
      if (++values > most) return true
    }
  }
  return false
}

const [quote, backslash, comma, bracket, brace] = Buffer.from('"\\,[{')

/** The bodies of many connections can end together, and each may take milliseconds. So one is parsed in a turn. */
const longBodies = new Queue({ atOnce: 1 })
const longBody = 16 * 1024

/** Whether a request has a body that may be longer than this. */
export function hasBody({ headers }: FastifyRequest, bytes = 0): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? '0') > bytes
}

/** A client that is still sending may have to finish before it reads the answer. Closed at once, it might lose it. */
function closeSoon({ raw }: FastifyRequest): void {
  const close = () => {
    if (!raw.complete) raw.socket.destroy()
  }
  const timer = setTimeout(close, lateMs).unref()
  raw.once('close', () => clearTimeout(timer))
}

/** A mebibyte in packets of 1 KiB. */
export const mostPieces = 1024
/** How long the rest of a refused body may take. */
const lateMs = 3_000

/** What Node's parser calls has a number for its name. */
type Parser = { constructor: { readonly kOnBody: number } } & Record<number, unknown>
type ParsedSocket = Socket & { readonly parser?: Parser | null }

/**
 * Lets Node's parser skip the rest of a chunked body that nobody reads. That is several times as fast as handing over
 * each chunk, and a packet can hold ten thousand of them. It is still ten times as expensive as a body of known length,
 * and nothing slows the client down, so the connection is closed when the rest is too long.
 */
export function ignoreBody(request: IncomingMessage): void {
  const { complete, headers, socket } = request
  const { parser } = socket as ParsedSocket
  if (complete || headers['transfer-encoding'] === undefined || !parser) return
  const { kOnBody } = parser.constructor
  if (parser[kOnBody] === undefined) return // it is ignored already
  handOver ??= parser[kOnBody]
  parser[kOnBody] = undefined
  let left = mostIgnored
  const count = ({ length }: Buffer) => {
    left -= length
    if (left < 0 && !request.complete) socket.destroy()
  }
  socket.on('data', count)
  request.once('close', () => socket.off('data', count))
}

/** How many bytes of a body are skipped. */
export const mostIgnored = 262_144

/** The next request on a connection gets its body again, and so does the next user of the parser: Node keeps parsers. */
function handOverNextBodies(server: Server): void {
  server.prependListener('request', ({ socket }) => restore((socket as ParsedSocket).parser))
  server.on('connection', (socket: ParsedSocket) => {
    const { parser } = socket
    socket.once('close', () => restore(parser))
  })
}

function restore(parser: Parser | null | undefined): void {
  if (parser && handOver !== undefined) parser[parser.constructor.kOnBody] = handOver
}

/** The same function for all parsers. */
let handOver: unknown
