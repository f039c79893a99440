import { type Fields, isObject } from '../../core/input.ts'
import { hasMoreValues } from '../../http/bodies.ts'
import { type OperationRequest, operationIn } from '../request.ts'

/** `fragments` and `chunks`: the parts in which one message may arrive, as frames and as pieces of the TCP stream. */
export const socketBounds = Object.freeze({
  operations: 100,
  idLength: 256,
  message: 256 * 1024,
  fragments: 64,
  chunks: 1024,
  pingPayload: 1024,
  depth: 64,
  values: 500,
})

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

/** A message of a graphql-transport-ws client. Its fields are not validated yet. */
export function messageIn(bytes: Buffer): Fields {
  try {
    const message: unknown = JSON.parse(hasMoreValues(bytes, socketBounds.values) ? '' : bytes.toString())
    if (isObject(message) && !nestsDeeperThan(socketBounds.depth, message)) return message
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

export interface Resume {
  /** Whether each message carries the position of its event. */
  readonly positions: boolean
  /** The position after which to begin, as the client sent it. Default: now. */
  readonly after?: unknown
}

/** How a `subscribe` message wants its events: `{"positions": true}` or `{"after": "<position>"}` in its extensions. */
export function resumeIn({ extensions: { positions, after } = {} }: OperationRequest): Resume {
  return after === undefined || after === null ? { positions: positions === true } : { positions: true, after }
}

export function pongTo(payload: Fields | null | undefined): string {
  const text = JSON.stringify(payload ?? undefined)
  if (text === undefined) return '{"type":"pong"}'
  if (Buffer.byteLength(text) > socketBounds.pingPayload) throw new Violation(4400, 'Ping payload is too large')
  return `{"type":"pong","payload":${text}}`
}

/** Functions that walk a message are recursive, and would overflow the stack if it were nested without a bound. */
function nestsDeeperThan(most: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return most === 0 || Object.values(value).some(each => nestsDeeperThan(most - 1, each))
}
