import type { RawResponse } from '../support/http.ts'
import { type Frame, opcodes } from '../support/sockets.ts'
import type { Case, Conversation, HttpRequest, RawBytes } from './cases.ts'
import { converse, type Dialogue, sendRequest } from './send.ts'
import { password } from './world.ts'

interface Attempt {
  readonly problem: string | undefined
  readonly outcome: string
}

/** Sends a case from this address. Returns the status or how the socket ended, and what is wrong with the answer. */
export async function attempt(port: number, sent: Case, localAddress: string): Promise<Attempt> {
  try {
    if (sent.kind === 'conversation') {
      const dialogue = await converse(port, sent, localAddress)
      return { problem: conversationProblem(sent, dialogue), outcome: endingOf(dialogue) }
    }
    const answers = await sendRequest(port, sent, localAddress)
    return { problem: requestProblem(sent, answers), outcome: String(answers[0]?.status ?? 'no answer') }
  } catch (error) {
    return { problem: String(error), outcome: 'no answer' }
  }
}

function endingOf({ frames, ending }: Dialogue): string {
  const close = frames.find(({ opcode }) => opcode === opcodes.close)
  return close === undefined || close.payload.length < 2 ? ending : `closed ${close.payload.readUInt16BE(0)}`
}

function requestProblem(sent: HttpRequest | RawBytes, answers: readonly RawResponse[]): string | undefined {
  if (sent.kind === 'request' && answers.length === 0) return 'no answer'
  return answers.map(answer => answerProblem(sent, answer)).find(problem => problem !== undefined)
}

function answerProblem(sent: HttpRequest | RawBytes, { status, headers, body }: RawResponse): string | undefined {
  const shown = `status ${status}: ${body.slice(0, 300)}`
  if (!allowed.has(status) && !isAboutHttp(status, body)) return shown
  if (status === 308 && !/^\.\.\/\w+$/.test(headers.get('location') ?? '')) return `leads away, with ${shown}`
  if (!/^[\w.:-]{1,128}$/.test(headers.get('x-request-id') ?? '')) return `no X-Request-Id with ${shown}`
  if (status === 401 && !headers.has('www-authenticate')) return `no WWW-Authenticate with ${shown}`
  if (status === 405 && !headers.has('allow')) return `no Allow with ${shown}`
  if (isWithoutBody(sent, status)) return body === '' ? undefined : `a body with ${shown}`
  if (status === 200 && headers.has('content-encoding')) return undefined // documents, which this does not decode
  const type = headers.get('content-type') ?? ''
  if (!/^application\/(graphql-response\+)?json(;|$)/.test(type)) {
    return (status < 300 || status === 404) && pageType.test(type)
      ? undefined
      : `the type ${JSON.stringify(type)} with ${shown}`
  }
  return bodyProblem(sent, status, body)
}

/** The statuses that are allowed without a limit, a fault or maintenance. */
const allowed = new Set([
  ...[101, 200, 201, 202, 204, 304, 308],
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
  const body = parsed(text)
  if (body === undefined) return `no JSON with status ${status}: ${text.slice(0, 300)}`
  if (status < 400) return undefined
  const { error, errors, ...more } = body
  const isPlain = typeof error === 'string' && error !== '' && errors === undefined
  if (isPlain && Object.keys(more).length === 0) return undefined
  if (!mayBeGraphQL(sent) || Object.keys(body).join() !== 'errors')
    return `a body of another shape: ${text.slice(0, 300)}`
  return errorsProblem(errors)
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return Object(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Errors in the GraphQL shape are allowed only on the path of GraphQL, in any notation of it. */
function mayBeGraphQL(sent: HttpRequest | RawBytes): boolean {
  if (sent.kind === 'bytes') return true
  const [path = ''] = sent.target.split('?', 1)
  const decoded = path.replaceAll(/%([0-7][\da-f])/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
  return decoded.includes('/graphql')
}

function errorsProblem(errors: unknown): string | undefined {
  if (!Array.isArray(errors) || errors.length === 0) return `no errors, but ${JSON.stringify(errors)}`
  for (const each of errors) {
    const { message, extensions, locations, path, ...more } = Object(each)
    const isShaped = typeof message === 'string' && message !== '' && Object.keys(more).length === 0
    const code = extensions?.code
    if (!isShaped || typeof code !== 'string') return `an error of another shape: ${JSON.stringify(each).slice(0, 300)}`
    // Longer ones would quote too much of the request.
    if (message.length > 2_000) return `a message of ${message.length} characters: ${message.slice(0, 300)}`
    if (ours.has(code)) return `${code}: ${message.slice(0, 300)}`
  }
  return undefined
}

/** The codes that mean a fault or an overload of the service. */
const ours = new Set('INTERNAL_SERVER_ERROR SERVICE_UNAVAILABLE RATE_LIMITED SUBSCRIPTION_TOO_EXPENSIVE'.split(' '))

function conversationProblem(sent: Conversation, { handshake, frames, ending }: Dialogue): string | undefined {
  const opening = { kind: 'bytes', name: sent.name, bytes: Buffer.from('GET /graphql') } as const
  if (handshake.status !== 101) return requestProblem(opening, [handshake]) ?? 'no socket was opened'
  for (const frame of frames) {
    const problem = frame.opcode === opcodes.close ? closeProblem(frame, sent) : frameProblem(frame)
    if (problem !== undefined) return problem
  }
  const isClosed = frames.some(({ opcode }) => opcode === opcodes.close)
  return ending === 'closed' && !isClosed ? 'the connection ended without a close frame (1006)' : undefined
}

/**
 * The close codes of the protocol, and those of WebSocket for invalid frames. Codes for internal errors and limits are
 * not allowed.
 */
const closeCodes = new Set([1000, 1002, 1003, 1007, 1008, 1009, 4400, 4401, 4403, 4406, 4409, 4429])

function closeProblem({ payload }: Frame, { steps }: Conversation): string | undefined {
  const code = payload.length < 2 ? 1005 : payload.readUInt16BE(0)
  // The server may repeat the close code of a frame of the client.
  const mayRepeat = steps.some(step => step !== 'reset' && 'frames' in step) && (code === 1005 || code >= 3000)
  return closeCodes.has(code) || mayRepeat ? undefined : `closed with ${code} ${payload.subarray(2)}`
}

function frameProblem({ opcode, payload }: Frame): string | undefined {
  if (opcode === opcodes.ping || opcode === opcodes.pong) return undefined
  const text = String(payload)
  if (opcode !== opcodes.text) return `a frame of kind ${opcode}: ${text.slice(0, 300)}`
  const message = parsed(text)
  if (message === undefined) return `a message that is no JSON: ${text.slice(0, 300)}`
  const { type, id, payload: content } = message
  if (type === 'connection_ack' || type === 'pong') return undefined
  if (typeof id !== 'string') return `a message without an id: ${text.slice(0, 300)}`
  if (type === 'complete') return undefined
  if (type === 'error') return errorsProblem(content)
  const isResult = type === 'next' && 'data' in Object(content) && !('errors' in Object(content))
  return isResult ? undefined : `a message of another shape: ${text.slice(0, 300)}`
}

/** The problem with a log line, if there is one: an internal error, or a secret of the client. */
export function lineProblem(line: string, token: string): string | undefined {
  const entry = parsed(line)
  if (entry === undefined) return `a line that is no JSON in the log: ${line.slice(0, 300)}`
  if (Number(entry.level) >= 50) return `a fault in the log: ${line.slice(0, 1500)}`
  const secret = [...secrets, token].find(each => line.includes(each))
  return secret === undefined ? undefined : `a secret in the log: ${line.slice(0, 1500)}`
}

/** Secrets of the OpenAPI examples, of the demo data, and of the users that send the requests. */
const secrets = ['demo-password', 'a-long-password', password, '@example.com']
