import { opcodes } from '../support/sockets.ts'
import type { Case } from './cases.ts'
import { conversationProblem } from './judge-conversation.ts'
import { requestProblem } from './judge-request.ts'
import { converse, type Dialogue } from './send-conversation.ts'
import { sendRequest } from './send-request.ts'

export interface Attempt {
  /** The problem with the answer of the server, if there is one. */
  readonly problem: string | undefined
  /** The status, or how the socket ended. */
  readonly outcome: string
}

/** Sends a case from this address, and judges what comes back. */
export async function attempt(port: number, sent: Case, localAddress: string): Promise<Attempt> {
  try {
    if (sent.kind === 'conversation') {
      const dialogue = await converse(port, sent, localAddress)
      return { problem: conversationProblem(sent, dialogue), outcome: endingOf(dialogue) }
    }
    const exchange = await sendRequest(port, sent, localAddress)
    return { problem: requestProblem(sent, exchange), outcome: String(exchange.answers[0]?.status ?? 'no answer') }
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    return { problem, outcome: 'no answer' }
  }
}

function endingOf({ frames, ending }: Dialogue): string {
  const close = frames.find(({ opcode }) => opcode === opcodes.close)
  return close === undefined || close.payload.length < 2 ? ending : `closed ${close.payload.readUInt16BE(0)}`
}
