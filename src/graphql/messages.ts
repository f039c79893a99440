import { type Fields, isObject } from '../core/input.ts'
import type { OperationRequest } from './execute.ts'
import { operationIn } from './request.ts'

/** What a client of graphql-transport-ws says, before anything of it is believed. */
export interface Message {
  readonly type?: unknown
  readonly id?: unknown
  readonly payload?: unknown
}

/** What the client may not do, and how the socket is closed for it. */
export class Violation extends Error {
  readonly code: number

  constructor(code: number, reason: string) {
    super(Buffer.byteLength(reason) > 123 ? reason.slice(0, 40) : reason) // what a close frame holds
    this.code = code
  }
}

/** What a message may carry beside: an object, or nothing. */
export function isPayload(payload: unknown): payload is Fields | null | undefined {
  return payload === undefined || payload === null || isObject(payload)
}

export function messageIn(text: string): Message {
  try {
    const message: unknown = JSON.parse(text)
    if (isObject(message)) return message
  } catch {}
  throw new Violation(4400, 'Invalid message')
}

/** A payload of the wrong form is a fault of the protocol, not of an operation. */
export function requestIn(payload: unknown): OperationRequest {
  try {
    return operationIn(payload)
  } catch {
    throw new Violation(4400, 'Invalid message')
  }
}
