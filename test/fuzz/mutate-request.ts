import { METHODS } from 'node:http'
import { bytesOf, type Header, type HttpRequest, type RawBytes } from './cases.ts'
import { mutateBytes, mutateGraphQL, mutateJson } from './mutate-text.ts'
import { interestingNumbers, interestingText, type Random } from './values.ts'

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
  return random.any(
    () => put(encodeURIComponent(interestingText(random).toWellFormed())),
    () => put(random.pick([...interestingNumbers, '-1', '01', 'me', '..', '.', '%2e%2e', ''])),
    () => put(`${segments[at]}/${segments[at]}`),
    () => `${path}${random.pick('/ // ? ?limit=1&limit=2 #x ;a=b % %00 %zz %c0%af %F0%9F'.split(' '))}`,
    () => random.pick([...'* // http://x/users http://[::1/users x /%'.split(' '), '', `/${'a'.repeat(9000)}`]),
    () => (random.chance(0.5) ? target.toUpperCase() : [...path].map(percentEncoded).join('')),
    () => `/api${path}`,
    () => mutateBytes(Buffer.from(target), random).toString('latin1'),
  )
}

const percentEncoded = (character: string): string =>
  character === '/' ? character : `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`

function mutateQuery(query: string, random: Random): string {
  const parameters = new URLSearchParams(query)
  const name = random.pick([...parameters.keys(), 'limit', 'offset', 'after', 'query', 'variables'])
  const value = parameters.get(name) ?? ''
  const set = (changed: string) => {
    parameters.set(name, changed.toWellFormed())
    return parameters.toString()
  }
  return random.any(
    () => set(interestingText(random)),
    () => set(random.pick(interestingNumbers)),
    () => `${query}&${name}=${encodeURIComponent(value)}`,
    () =>
      name === 'query' ? set(mutateGraphQL(value, random)) : mutateBytes(Buffer.from(query), random).toString('latin1'),
    () =>
      name === 'variables' && value.startsWith('{')
        ? set(mutateJson(value, random))
        : `${query}&${random.pick(['__proto__=1', 'a[]=1', 'a[b]=1', '=', '&&', '%', 'x'.repeat(5000)])}`,
  )
}

function mutateHeaders(headers: readonly Header[], random: Random): readonly Header[] {
  const at = random.below(headers.length)
  const [name, value] = headers[at] ?? ['X', 'x']
  const put = (...items: readonly Header[]) => [...headers.slice(0, at), ...items, ...headers.slice(at + 1)]
  const suffix = () => random.pick([', x', ';q=0', '; charset=utf-16', ' ', ',', '"'])
  return random.any<readonly Header[]>(
    () => put(),
    () => put([name, value], [name, value]),
    () => put([name, Buffer.from(interestingText(random)).toString('latin1')]),
    () => put([name, mutateBytes(Buffer.from(value, 'latin1'), random).toString('latin1')]),
    () => put([mutateBytes(Buffer.from(name), random).toString('latin1'), value]),
    () => put([random.chance(0.5) ? name.toUpperCase() : name, `${value}${suffix()}`]),
    () => [...headers, random.pick(extra)],
  )
}

const extra: readonly Header[] = [
  ...['__proto__: x', 'Expect: 100-continue', 'Expect: a miracle', 'Connection: close', 'Upgrade: h2c'],
  ...['Upgrade: websocket', 'Content-Type: text/plain', 'Content-Type: application/json; charset=utf-16'],
  ...['Content-Encoding: gzip', 'Accept: */*;q=0', `Accept: ${','.repeat(5000)}`, 'Accept-Encoding: gzip, br'],
  ...['Authorization: Bearer', `Authorization: Bearer ${'a.'.repeat(3000)}`, 'Authorization: Basic eDp5'],
  ...['X-Forwarded-For: ::1, 999.1.1.1', 'X-HTTP-Method-Override: DELETE', 'X-Request-Id: \u00ff', 'Range: bytes=0-0'],
  ...['If-Match: *', 'Trailer: Content-Length', 'Cookie: a=b', 'Origin: null', 'Sec-WebSocket-Protocol: a, a'],
  `X: ${'y'.repeat(20_000)}`,
].map(line => line.split(/: (.*)/s).slice(0, 2) as [string, string])

/** Changes bytes anywhere, so that it is ambiguous where the request starts or ends. */
function mutateFraming(request: HttpRequest, random: Random): RawBytes {
  let bytes = bytesOf(request)
  for (let left = random.between(1, 4); left > 0; left--) bytes = mutateBytes(bytes, random)
  return { kind: 'bytes', name: request.name, bytes }
}
