import { isUtf8 } from 'node:buffer'
import { errorCodes, type FastifyInstance, type FastifyRequest } from 'fastify'
import { AppError } from '../core/errors.ts'

/** Request bodies must be JSON in UTF-8: any other type gets 415, any other encoding or invalid syntax gets 400. */
export function acceptJsonBodies(server: FastifyInstance): void {
  server.removeAllContentTypeParsers()
  const read = (request: FastifyRequest, body: Buffer, done: (error: Error | null, value?: unknown) => void) => {
    if (body.length === 0) return done(null, undefined)
    if (!isJson(request.headers['content-type'])) return done(new errorCodes.FST_ERR_CTP_INVALID_MEDIA_TYPE())
    if (!isUtf8(body)) return done(new AppError('bad-input', 'Request body is not valid UTF-8'))
    if (hasMoreValues(body, mostValues))
      return done(new AppError('bad-input', `Request body has more than ${mostValues} values`))
    let value: unknown
    try {
      value = parseJson(body.toString('utf8'))
    } catch {
      return done(new errorCodes.FST_ERR_CTP_INVALID_JSON_BODY())
    }
    done(null, value)
  }
  // Both, because Fastify finds a named type faster. `isJson` checks the type again, because Fastify ignores parameters
  // that it cannot parse.
  server.addContentTypeParser(['application/json', '*'], { parseAs: 'buffer' }, read)
}

/** Far more than any request needs. A body of 1 MiB can have half a million values, which take 50 ms to parse. */
export const mostValues = 20_000

/**
 * A field named `__proto__` becomes an ordinary field, which no code reads: `JSON.parse` sets no prototype. This is
 * safe as long as code reads fields by name or spreads the object, and never copies it by assignment.
 */
function parseJson(text: string): unknown {
  return JSON.parse(text.startsWith(byteOrderMark) ? text.slice(1) : text)
}

const byteOrderMark = '\ufeff'

function isJson(type = ''): boolean {
  return type === 'application/json' || jsonType.test(type)
}

// Parameters are allowed, but the only charset of JSON is UTF-8.
const parameter = String.raw`;\s*(?:charset=(?:utf-?8|"utf-?8")|(?!charset=)[\w.-]+=(?:[\w.+-]+|"[^"\\]*"))\s*`
const jsonType = new RegExp(String.raw`^application/json\s*(?:${parameter})*;?$`, 'i')

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
