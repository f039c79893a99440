import { METHODS } from 'node:http'
import type { Header, HttpRequest, RawBytes } from './cases.ts'
import { interestingNumbers, interestingText } from './interesting.ts'
import { mutateBytes } from './mutate-bytes.ts'
import { mutateFraming } from './mutate-framing.ts'
import { mutateGraphQL } from './mutate-graphql.ts'
import { mutateJson } from './mutate-json.ts'
import type { Random } from './random.ts'

/** Changes a valid request in up to three places. Some requests stay valid. */
export function mutateRequest(request: HttpRequest, random: Random): HttpRequest | RawBytes {
  if (random.chance(0.15)) return request
  let mutated = request
  for (let left = random.pick([1, 1, 1, 1, 2, 3]); left > 0; left--) mutated = mutatedOnce(mutated, random)
  return random.chance(0.15) ? mutateFraming(mutated, random) : mutated
}

function mutatedOnce(request: HttpRequest, random: Random): HttpRequest {
  const { body, target, headers } = request
  if (body !== undefined && random.chance(0.7)) return { ...request, body: mutateBody(body, random) }
  if (random.chance(0.15)) return { ...request, method: random.pick(methods) }
  if (random.chance(0.5)) return { ...request, target: mutateTarget(target, random) }
  return { ...request, headers: mutateHeaders(headers, random) }
}

const methods = [...METHODS, ...METHODS, 'get', 'FOO', '', 'GET ', 'POST\t', 'M'.repeat(300)]

function mutateBody(body: Buffer, random: Random): Buffer {
  if (random.chance(0.25)) return mutateBytes(body, random)
  try {
    return Buffer.from(mutateJson(body.toString(), random))
  } catch {
    return mutateBytes(body, random) // an earlier change has made it invalid JSON
  }
}

function mutateTarget(target: string, random: Random): string {
  const [path = '', query] = target.split('?', 2)
  if (query !== undefined && random.chance(0.6)) return `${path}?${mutateQuery(query, random)}`
  const segments = path.split('/')
  const at = random.below(segments.length)
  const put = (segment: string) => segments.with(at, segment).join('/')
  switch (random.below(8)) {
    case 0:
      return put(encodeURIComponent(wellFormed(interestingText(random))))
    case 1:
      return put(random.pick([...interestingNumbers, '-1', '01', 'me', '..', '.', '%2e%2e', '']))
    case 2:
      return `${put(`${segments[at]}/${segments[at]}`)}`
    case 3:
      return `${path}${random.pick(['/', '//', '?', '?limit=1&limit=2', '#x', ';a=b', '%', '%00', '%zz', '%c0%af', '%F0%9F'])}`
    case 4:
      return random.pick([
        '*',
        '//',
        'http://x/users',
        'http://[::1/users',
        'x',
        '',
        '/%',
        '/'.repeat(300),
        `/${'a'.repeat(9000)}`,
      ])
    case 5:
      return random.chance(0.5) ? target.toUpperCase() : [...path].map(percentEncoded).join('')
    case 6:
      return `/api${path}`
    default:
      return mutateBytes(Buffer.from(target), random).toString('latin1')
  }
}

function mutateQuery(query: string, random: Random): string {
  const parameters = new URLSearchParams(query)
  const name = random.pick([...parameters.keys(), 'limit', 'offset', 'after', 'query', 'variables'])
  const value = parameters.get(name) ?? ''
  switch (random.below(5)) {
    case 0:
      parameters.set(name, wellFormed(interestingText(random)))
      break
    case 1:
      parameters.set(name, random.pick(interestingNumbers))
      break
    case 2:
      parameters.append(name, value)
      break
    case 3:
      if (name !== 'query') return mutateBytes(Buffer.from(query), random).toString('latin1')
      parameters.set(name, mutateGraphQL(value, random))
      break
    default:
      if (!value.startsWith('{'))
        return `${query}&${random.pick(['__proto__=1', 'a[]=1', 'a[b]=1', '=', '&&', '%', 'x'.repeat(5000)])}`
      if (name === 'variables') parameters.set(name, wellFormed(mutateVariables(value, random)))
  }
  return parameters.toString()
}

function mutateVariables(text: string, random: Random): string {
  try {
    return mutateJson(text, random)
  } catch {
    return `${text}}`
  }
}

function mutateHeaders(headers: readonly Header[], random: Random): readonly Header[] {
  const at = random.below(headers.length)
  const [name, value] = headers[at] ?? ['X', 'x']
  const put = (...items: readonly Header[]) => [...headers.slice(0, at), ...items, ...headers.slice(at + 1)]
  switch (random.below(7)) {
    case 0:
      return put()
    case 1:
      return put([name, value], [name, value])
    case 2:
      return put([name, latin1(interestingText(random))])
    case 3:
      return put([name, mutateBytes(Buffer.from(value, 'latin1'), random).toString('latin1')])
    case 4:
      return put([mutateBytes(Buffer.from(name), random).toString('latin1'), value])
    case 5:
      return put([
        random.chance(0.5) ? name.toUpperCase() : name,
        `${value}${random.pick([', x', ';q=0', '; charset=utf-16', ' ', ',', '"'])}`,
      ])
    default:
      return [...headers, random.pick(extra)]
  }
}

const extra: readonly Header[] = [
  ['__proto__', 'x'],
  ['Expect', '100-continue'],
  ['Expect', 'a miracle'],
  ['Connection', 'close'],
  ['Connection', 'Upgrade, content-type'],
  ['Upgrade', 'h2c'],
  ['Upgrade', 'websocket'],
  ['Content-Type', 'text/plain'],
  ['Content-Type', 'application/json; charset=utf-16'],
  ['Content-Encoding', 'gzip'],
  ['Accept', '*/*;q=0'],
  ['Accept', ','.repeat(5000)],
  ['Accept-Encoding', 'gzip, br'],
  ['Authorization', 'Bearer'],
  ['Authorization', `Bearer ${'a.'.repeat(3000)}`],
  ['Authorization', 'Basic eDp5'],
  ['X-Forwarded-For', '::1, 999.1.1.1'],
  ['X-HTTP-Method-Override', 'DELETE'],
  ['X-Request-Id', '\u00ff'],
  ['Range', 'bytes=0-0'],
  ['If-Match', '*'],
  ['Trailer', 'Content-Length'],
  ['Cookie', 'a=b'],
  ['Origin', 'null'],
  ['Sec-WebSocket-Protocol', 'a, a'],
  ['X', 'y'.repeat(20_000)],
]

/** `URLSearchParams` and `encodeURIComponent` do not accept half of a surrogate pair. */
function wellFormed(text: string): string {
  return text.toWellFormed()
}

function latin1(text: string): string {
  return Buffer.from(text).toString('latin1')
}

function percentEncoded(character: string): string {
  return character === '/' ? character : `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`
}
