import { isUtf8 } from 'node:buffer'
import type { FastifyInstance } from 'fastify'
import { AppError } from '../core/errors.ts'

/** Bodies are JSON in UTF-8 and nothing else: another type is 415, another encoding or broken syntax 400. */
export function acceptJsonBodies(server: FastifyInstance): void {
  server.removeAllContentTypeParsers()
  // Refuses `__proto__` and `constructor.prototype` as keys, so that no later copy of the object can be poisoned.
  const parse = server.getDefaultJsonParser('error', 'error')
  server.addContentTypeParser(jsonType, { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    if (body.length === 0) return done(null, undefined)
    if (!isUtf8(body)) return done(new AppError('bad-input', 'Request body is not valid UTF-8'))
    return parse(request, body.toString('utf8'), (error, value) => {
      if (error) done(new AppError('bad-input', 'Request body is not valid JSON'))
      else done(null, value)
    })
  })
}

// Parameters are allowed, but JSON has no charset other than UTF-8.
const parameter = String.raw`;\s*(?:charset\s*=\s*"?utf-?8"?|(?!charset)[\w.-]+\s*=\s*(?:[\w.+-]+|"[^"\\]*"))\s*`
const jsonType = new RegExp(String.raw`^application/json\s*(?:${parameter})*;?$`, 'i')
