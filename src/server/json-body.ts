import { isUtf8 } from 'node:buffer'
import { errorCodes, type FastifyInstance, type FastifyRequest } from 'fastify'
import { AppError } from '../core/errors.ts'

/** Bodies are JSON in UTF-8 and nothing else: another type is 415, another encoding or broken syntax 400. */
export function acceptJsonBodies(server: FastifyInstance): void {
  server.removeAllContentTypeParsers()
  // Refuses `__proto__` and `constructor.prototype` as keys, so that no later copy of the object can be poisoned.
  const parse = server.getDefaultJsonParser('error', 'error')
  const read = (request: FastifyRequest, body: Buffer, done: (error: Error | null, value?: unknown) => void) => {
    if (body.length === 0) return done(null, undefined)
    if (!isJson(request.headers['content-type'])) return done(new errorCodes.FST_ERR_CTP_INVALID_MEDIA_TYPE())
    if (!isUtf8(body)) return done(new AppError('bad-input', 'Request body is not valid UTF-8'))
    return parse(request, body.toString('utf8'), done)
  }
  // Both, because Fastify looks a named type up faster; by itself it would also skip parameters that it cannot read.
  server.addContentTypeParser(['application/json', '*'], { parseAs: 'buffer' }, read)
}

function isJson(type = ''): boolean {
  return type === 'application/json' || jsonType.test(type)
}

// Parameters are allowed, but JSON has no charset other than UTF-8.
const parameter = String.raw`;\s*(?:charset=(?:utf-?8|"utf-?8")|(?!charset=)[\w.-]+=(?:[\w.+-]+|"[^"\\]*"))\s*`
const jsonType = new RegExp(String.raw`^application/json\s*(?:${parameter})*;?$`, 'i')
