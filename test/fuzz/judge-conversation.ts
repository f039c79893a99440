import { type Frame, opcodes } from '../support/sockets.ts'
import type { Conversation } from './cases.ts'
import { errorsProblem } from './judge-errors.ts'
import { requestProblem } from './judge-request.ts'
import type { Dialogue } from './send-conversation.ts'
import { closeCodeIn } from './sent-frames.ts'

/** The problem with the server's side of a conversation, if there is one. */
export function conversationProblem(conversation: Conversation, dialogue: Dialogue): string | undefined {
  const { handshake, frames, sent, ending } = dialogue
  if (handshake?.status !== 101) {
    const opening = { ...conversation, kind: 'bytes', bytes: Buffer.from('GET /graphql') } as const
    return (
      requestProblem(opening, { answers: handshake === undefined ? [] : [handshake], rest: '' }) ??
      'no socket was opened'
    )
  }
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
const allowed = new Set([1000, 1002, 1003, 1007, 1008, 1009, 4400, 4401, 4403, 4406, 4409, 4429])

function closeProblem({ payload }: Frame, sent: Buffer): string | undefined {
  const code = payload.length < 2 ? 1005 : payload.readUInt16BE(0)
  // The server may repeat the close code of the client.
  if (allowed.has(code) || closeCodeIn(sent) === code) return undefined
  return `closed with ${code} ${payload.subarray(2)}`
}

function frameProblem({ opcode, payload }: Frame): string | undefined {
  if (opcode === opcodes.ping || opcode === opcodes.pong) return undefined
  const text = String(payload)
  if (opcode !== opcodes.text) return `a frame of kind ${opcode}: ${text.slice(0, 300)}`
  let message: { readonly type?: unknown; readonly id?: unknown; readonly payload?: unknown }
  try {
    message = Object(JSON.parse(text))
  } catch {
    return `a message that is no JSON: ${text.slice(0, 300)}`
  }
  const { type, id, payload: content } = message
  if (type === 'connection_ack' || type === 'pong') return undefined
  if (typeof id !== 'string') return `a message without an id: ${text.slice(0, 300)}`
  if (type === 'complete') return undefined
  if (type === 'error') return errorsProblem(content)
  const isResult = type === 'next' && 'data' in Object(content) && !('errors' in Object(content))
  return isResult ? undefined : `a message of another shape: ${text.slice(0, 300)}`
}
