import { clientFrame } from '../support/sockets.ts'

/** One case of the fuzzer: a request, bytes that may contain requests, or all messages of a client on a socket. */
export type Case = HttpRequest | RawBytes | Conversation

export type Header = readonly [name: string, value: string]

/** A request whose start and end are clear, so it must be answered. */
export interface HttpRequest {
  readonly kind: 'request'
  /** The operation that it was made from. */
  readonly name: string
  readonly method: string
  readonly target: string
  readonly version: string
  readonly headers: readonly Header[]
  readonly body: Buffer | undefined
}

/** Bytes that may contain any number of requests. */
export interface RawBytes {
  readonly kind: 'bytes'
  readonly name: string
  readonly bytes: Buffer
}

export interface Conversation {
  readonly kind: 'conversation'
  readonly name: string
  readonly headers: readonly Header[]
  readonly steps: readonly Step[]
}

export interface Message {
  readonly text: string
  /** Whether the client waits for `connection_ack` before it sends more. */
  readonly isAcknowledged?: boolean
}

/** A whole message, raw frames, or the end of the connection without a close frame. */
export type Step = Message | { readonly frames: Buffer; readonly isSound: boolean } | 'reset'

export function bytesOf({ method, target, version, headers, body }: HttpRequest): Buffer {
  const all = body === undefined ? headers : [...headers, ['Content-Length', body.length]]
  const lines = all.map(([name, value]) => `${name}: ${value}\r\n`)
  const head = Buffer.from(`${method} ${target} ${version}\r\n${lines.join('')}\r\n`, 'latin1')
  return Buffer.concat([head, body ?? Buffer.alloc(0)])
}

export const framesOf = (step: Exclude<Step, 'reset'>): Buffer =>
  'text' in step ? clientFrame(step.text) : step.frames

/** A case in a form that a person can read and copy into a test. A repeated text is written once. */
export function show(shown: Case): string {
  const text = (bytes: Buffer) => bytes.toString('latin1')
  const stepShown = (step: Step) => (typeof step === 'object' && 'frames' in step ? text(step.frames) : step)
  const told =
    shown.kind === 'conversation'
      ? [shown.headers, ...shown.steps.map(stepShown)]
      : text(shown.kind === 'request' ? bytesOf(shown) : shown.bytes)
  const repeated = /(.{1,8}?)\1{15,}/gs
  return JSON.stringify(told).replaceAll(repeated, (whole, unit) => `⟨${unit} × ${whole.length / unit.length}⟩`)
}
