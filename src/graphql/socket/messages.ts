import { type Fields, isObject } from '../../server/fields.ts'
import { hasMoreValues } from '../../server/json-values.ts'
import { operationIn } from '../http/request.ts'
import type { OperationRequest } from '../operation-request.ts'
import { fromNow, type Resume } from '../subscriptions/resume.ts'

/** Bytes of JSON that a `ping` may carry, and how deep any message may nest. */
export const messageBounds = Object.freeze({ pingPayload: 1024, depth: 64, values: 5_000 })

/** A message of a graphql-transport-ws client, before it is validated. */
export interface Message {
  readonly type?: unknown
  readonly id?: unknown
  readonly payload?: unknown
}

/** The client violated the protocol. Contains the code and the reason for closing the socket. */
export class Violation extends Error {
  readonly code: number

  constructor(code: number, reason: string) {
    super(Buffer.byteLength(reason) > 123 ? reason.slice(0, 40) : reason) // a close frame has room for 123 bytes
    this.code = code
  }
}

/** Whether an optional payload is valid: an object or nothing. */
export function isPayload(payload: unknown): payload is Fields | null | undefined {
  return payload === undefined || payload === null || isObject(payload)
}

export function messageIn(bytes: Buffer): Message {
  try {
    const text = hasMoreValues(bytes, messageBounds.values) ? '' : bytes.toString()
    const message: unknown = nestsDeeperThan(messageBounds.depth, text) ? undefined : JSON.parse(text)
    if (isObject(message)) return message
  } catch {}
  throw new Violation(4400, 'Invalid message')
}

/** The operation of a `subscribe` message. An invalid payload is a protocol error, not an operation's error. */
export function requestIn(payload: unknown): OperationRequest {
  try {
    return operationIn(payload)
  } catch {
    throw new Violation(4400, 'Invalid message')
  }
}

/** How a `subscribe` message wants its events: `{"positions": true}` or `{"after": "<position>"}` in its extensions. */
export function resumeIn(payload: unknown): Resume {
  const extensions = isObject(payload) ? payload.extensions : undefined
  if (!isObject(extensions)) return fromNow
  const { positions, after } = extensions
  return after === undefined || after === null ? { positions: positions === true } : { positions: true, after }
}

/** The payload of a `ping` as JSON, to be sent back. */
export function pingPayloadIn(payload: Fields): string {
  const text = JSON.stringify(payload)
  if (Buffer.byteLength(text) > messageBounds.pingPayload) throw new Violation(4400, 'Ping payload is too large')
  return text
}

/**
 * Whether arrays and objects in a JSON text are nested deeper than `most`. Checked before the text is parsed, because
 * functions that walk the parsed value are recursive and would overflow the stack.
 */
function nestsDeeperThan(most: number, text: string): boolean {
  if (text.length <= most) return false
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) at = endOfString(text, at)
    else if (code === openBrace || code === openBracket) {
      if (++depth > most) return true
    } else if (code === closeBrace || code === closeBracket) depth--
  }
  return false
}

/** The index where the string that starts here ends. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = 0
    while (text.charCodeAt(end - 1 - escapes) === backslash) escapes++
    if (escapes % 2 === 0) return end
  }
  return text.length
}

const [quote, backslash, openBrace, openBracket, closeBrace, closeBracket] = [0x22, 0x5c, 0x7b, 0x5b, 0x7d, 0x5d]
