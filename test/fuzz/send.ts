import { parseResponse, RawConnection, type RawResponse } from '../support/http.ts'
import { clientFrame, type Frame, frameIn, opcodes, upgradeLines } from '../support/sockets.ts'
import { bytesOf, type Conversation, framesOf, type HttpRequest, type RawBytes } from './cases.ts'

/** How long to wait for an answer to a request that may be incomplete. After that the client closes its side. */
const quietMs = 100

/** Sends a request on its own connection. Returns the answers, without informational ones (1xx). */
export async function sendRequest(
  port: number,
  sent: HttpRequest | RawBytes,
  localAddress: string,
): Promise<readonly RawResponse[]> {
  using connection = await RawConnection.open(port, localAddress)
  const bytes = sent.kind === 'request' ? bytesOf(sent) : sent.bytes
  const isHead = sent.kind === 'request' ? sent.method === 'HEAD' : bytes.includes('HEAD')
  const answers = () => answersIn(connection.unread, isHead, connection.isOver)
  connection.write(bytes)
  await connection.until(() => answers().length > 0, sent.kind === 'request' ? undefined : quietMs)
  if (sent.kind === 'bytes') {
    connection.finish()
    await connection.closed()
  }
  return answers()
}

function answersIn(text: string, isHead: boolean, isOver: boolean): readonly RawResponse[] {
  const answers: RawResponse[] = []
  let rest = text
  for (let next = answerIn(rest, isHead, isOver); next !== undefined; next = answerIn(rest, isHead, isOver)) {
    rest = rest.slice(next.length)
    if (next.response.status === 101 || next.response.status >= 200) answers.push(next.response)
    if (next.response.status === 101) break // after this the connection is no longer HTTP
  }
  return answers
}

/** Answers to HEAD announce a body that is not sent. */
function answerIn(text: string, isHead: boolean, isOver: boolean): ReturnType<typeof parseResponse> {
  if (!isHead) return parseResponse(text, isOver)
  const start = Math.max(0, text.indexOf('HTTP/1.1 '))
  const end = text.indexOf('\r\n\r\n', start) + 4
  if (end < 4) return undefined
  const parsed = parseResponse(text.slice(start, end).replace(/\r\n(content-length|transfer-encoding):[^\r]*/gi, ''))
  return parsed && { response: { ...parsed.response, body: '' }, length: end }
}

/** The result of a conversation. */
export interface Dialogue {
  readonly handshake: RawResponse
  readonly frames: readonly Frame[]
  /** How it ended: the server answered our last message, the server closed, or we disconnected. */
  readonly ending: 'answered' | 'closed' | 'left'
}

/** Sends all messages, then a ping that must be answered, unless the server closes before. */
export async function converse(port: number, conversation: Conversation, localAddress: string): Promise<Dialogue> {
  using connection = await RawConnection.open(port, localAddress)
  connection.write(`${upgradeLines(Object.fromEntries(conversation.headers)).join('\r\n')}\r\n\r\n`)
  const handshake = await connection.response()
  const frames = () => framesIn(Buffer.from(connection.unread, 'latin1'))
  const hears = (text: string) => frames().some(({ payload }) => payload.includes(text))
  const isClosed = () => frames().some(({ opcode }) => opcode === opcodes.close)
  let isSound = true
  let hasLeft = false
  /** Waits for a text, or for the end. If the server may still wait for the rest of a frame, our side is closed. */
  const answered = async (text: string): Promise<Dialogue['ending']> => {
    const isDone = () => isClosed() || hears(text)
    if (!(await connection.until(isDone, isSound ? undefined : quietMs))) {
      hasLeft = true
      connection.finish()
      await connection.until(isDone)
    }
    return hasLeft ? 'left' : hears(text) ? 'answered' : 'closed'
  }
  if (handshake.status !== 101) return { handshake, frames: [], ending: 'closed' }
  for (const step of conversation.steps) {
    if (step === 'reset') {
      connection.reset()
      return { handshake, frames: frames(), ending: 'left' }
    }
    isSound &&= 'text' in step || step.isSound
    connection.write(framesOf(step))
    // Sending earlier would close the socket, and most conversations would be short.
    if ('text' in step && step.isAcknowledged) await answered('"connection_ack"')
  }
  connection.write(clientFrame(JSON.stringify({ type: 'ping', payload: { mark } })))
  const ending = await answered(mark)
  return { handshake, frames: frames(), ending }
}

/** The payload of the last ping, which the server sends back. */
const mark = 'this was all'

function framesIn(bytes: Buffer): readonly Frame[] {
  const frames: Frame[] = []
  let rest = bytes
  for (let frame = frameIn(rest); frame !== undefined; frame = frameIn(rest)) {
    rest = rest.subarray(frame.length)
    frames.push(frame)
  }
  return frames
}
