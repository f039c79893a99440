import type { RawResponse } from '../support/http.ts'
import type { HttpRequest, RawBytes } from './cases.ts'
import { errorsProblem } from './judge-errors.ts'
import type { Exchange } from './send-request.ts'

/** The problem with the answer to a request, if there is one. */
export function requestProblem(sent: HttpRequest | RawBytes, { answers, rest }: Exchange): string | undefined {
  const [first] = answers
  if (sent.kind === 'request' && first === undefined) return `no answer, but ${JSON.stringify(rest.slice(0, 200))}`
  for (const answer of answers) {
    const problem = answerProblem(sent, answer)
    if (problem !== undefined) return problem
  }
  return undefined
}

function answerProblem(sent: HttpRequest | RawBytes, { status, headers, body }: RawResponse): string | undefined {
  const shown = `status ${status}: ${body.slice(0, 300)}`
  if (!allowed.has(status) && !isAboutHttp(status, body)) return shown
  if (status === 308 && !/^\.\.\/\w+$/.test(headers.get('location') ?? '')) return `leads away, with ${shown}`
  if (!/^[\w.:-]{1,128}$/.test(headers.get('x-request-id') ?? '')) return `no X-Request-Id with ${shown}`
  if (status === 401 && !headers.has('www-authenticate')) return `no WWW-Authenticate with ${shown}`
  if (status === 405 && !headers.has('allow')) return `no Allow with ${shown}`
  if (isWithoutBody(sent, status)) return body === '' ? undefined : `a body with ${shown}`
  const type = headers.get('content-type') ?? ''
  if (!/^application\/(graphql-response\+)?json(;|$)/.test(type)) {
    return status < 300 && pageType.test(type) ? undefined : `the type ${JSON.stringify(type)} with ${shown}`
  }
  return bodyProblem(sent, status, body)
}

/** The statuses that are allowed without a limit, a fault or maintenance. */
const allowed = new Set([
  ...[101, 200, 201, 204, 304, 308],
  ...[400, 401, 403, 404, 405, 408, 409, 412, 413, 415, 417, 421, 431],
])

/** Whether the status is 501 or 505 because of HTTP features that a server need not support. */
function isAboutHttp(status: number, body: string): boolean {
  const text = { 501: 'CONNECT is not supported', 505: 'HTTP version is not supported' }[status]
  return text !== undefined && (body === '' || body === JSON.stringify({ error: text }))
}

function isWithoutBody(sent: HttpRequest | RawBytes, status: number): boolean {
  if (status === 101 || status === 204 || status === 304 || status === 308) return true
  return sent.kind === 'request' ? sent.method === 'HEAD' : sent.bytes.includes('HEAD')
}

const pageType = /^(text\/(html|css|javascript|plain)|image\/[\w.+-]+)(;|$)/

function bodyProblem(sent: HttpRequest | RawBytes, status: number, text: string): string | undefined {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return `no JSON with status ${status}: ${text.slice(0, 300)}`
  }
  if (status < 400) return undefined
  const { error, errors, ...more } = Object(body)
  const isPlain = typeof error === 'string' && error !== '' && errors === undefined
  if (isPlain && Object.keys(more).length === 0) return undefined
  if (!mayBeGraphQL(sent) || Object.keys(Object(body)).join() !== 'errors')
    return `a body of another shape: ${text.slice(0, 300)}`
  return errorsProblem(errors)
}

/** Errors in the GraphQL shape are allowed only on the path of GraphQL, in any notation of it. */
function mayBeGraphQL(sent: HttpRequest | RawBytes): boolean {
  if (sent.kind === 'bytes') return true
  const [path = ''] = sent.target.split('?', 1)
  const decoded = path.replaceAll(/%([0-7][\da-f])/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
  return decoded.includes('/graphql')
}
