import { parseResponse, type RawResponse } from '../support/http.ts'
import { clientFrame, type Frame, frameIn, opcodes, upgradeLines } from '../support/sockets.ts'
import { within } from '../support/wait.ts'
import { type Conversation, framesOf } from './cases.ts'
import { quietMs, Wire } from './wire.ts'

/** The result of a conversation. */
export interface Dialogue {
  readonly handshake: RawResponse | undefined
  readonly frames: readonly Frame[]
  /** All frames that were sent, concatenated. */
  readonly sent: Buffer
  /** How it ended: the server answered our last message, the server closed, or we disconnected. */
  readonly ending: 'answered' | 'closed' | 'left'
}

/** Sends all messages, then a ping that must be answered, unless the server closes before. */
export async function converse(port: number, conversation: Conversation, localAddress: string): Promise<Dialogue> {
  using wire = await Wire.open(port, localAddress)
  const dialogue = new Client(wire)
  await within(dialogue.hold(conversation), 'a last answer, or the end of a conversation')
  return dialogue
}

class Client implements Dialogue {
  readonly #wire: Wire
  #unread: Buffer = Buffer.alloc(0)
  #isSound = true
  handshake: RawResponse | undefined
  readonly frames: Frame[] = []
  readonly #sent: Buffer[] = []
  ending: Dialogue['ending'] = 'closed'

  constructor(wire: Wire) {
    this.#wire = wire
  }

  get sent(): Buffer {
    return Buffer.concat(this.#sent)
  }

  async hold({ headers, steps }: Conversation): Promise<void> {
    this.#wire.write(Buffer.from(`${upgradeLines(Object.fromEntries(headers)).join('\r\n')}\r\n\r\n`, 'latin1'))
    await this.#until(() => this.handshake !== undefined)
    if (this.handshake?.status !== 101) return
    for (const step of steps) {
      if (step === 'reset') {
        this.ending = 'left'
        return this.#wire.reset()
      }
      this.#isSound &&= 'text' in step || step.isSound
      this.#send(framesOf(step))
      // Sending earlier would close the socket, and most conversations would be short.
      if ('text' in step && step.isAcknowledged) await this.#until(() => this.#heard('"connection_ack"'))
    }
    this.#send(clientFrame(farewell))
    await this.#until(() => this.#heard(mark))
    if (this.#heard(mark)) this.ending = 'answered'
  }

  #send(frames: Buffer): void {
    this.#sent.push(frames)
    this.#wire.write(frames)
  }

  #heard(text: string): boolean {
    return this.frames.some(({ payload }) => payload.includes(text))
  }

  /** Waits for a condition, or for the end. If the server may still wait for the rest of a frame, our side is closed. */
  async #until(condition: () => boolean): Promise<void> {
    const isClosed = () => this.frames.some(({ opcode }) => opcode === opcodes.close)
    while (!condition() && !isClosed() && !this.#wire.isOver) {
      if (!(await this.#wire.more(this.#isSound ? undefined : quietMs))) {
        this.ending = 'left'
        this.#wire.finish()
      }
      this.#read(this.#wire.take())
    }
  }

  #read(bytes: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, bytes])
    if (this.handshake === undefined) {
      const parsed = parseResponse(this.#unread.toString('latin1'), this.#wire.isOver)
      if (parsed === undefined) return
      this.handshake = parsed.response
      this.#unread = this.#unread.subarray(parsed.length)
    }
    for (let frame = frameIn(this.#unread); frame !== undefined; frame = frameIn(this.#unread)) {
      this.#unread = this.#unread.subarray(frame.length)
      this.frames.push(frame)
    }
  }
}

/** The payload of the last ping, which the server sends back. */
const mark = 'this was all'
const farewell = JSON.stringify({ type: 'ping', payload: { mark } })
