import { parseResponse, type RawResponse } from '../support/http.ts'
import { within } from '../support/wait.ts'
import { bytesOf, type HttpRequest, type RawBytes } from './cases.ts'
import { quietMs, Wire } from './wire.ts'

/** The result of one request, or of bytes that may be one. */
export interface Exchange {
  /** Without informational answers (1xx). */
  readonly answers: readonly RawResponse[]
  /** Bytes after the last whole answer. */
  readonly rest: string
}

/**
 * Sends the case on its own connection, and waits for the answer. If the request may be incomplete, a timeout is
 * allowed.
 */
export async function sendRequest(port: number, sent: HttpRequest | RawBytes, localAddress: string): Promise<Exchange> {
  using wire = await Wire.open(port, localAddress)
  return await within(sent.kind === 'request' ? whole(wire, sent) : doubtful(wire, sent), 'an answer or the end')
}

async function whole(wire: Wire, sent: HttpRequest): Promise<Exchange> {
  wire.write(bytesOf(sent))
  const reader = new Reader(sent.method === 'HEAD')
  while (reader.answers.length === 0 && !wire.isOver) {
    await wire.more()
    reader.read(wire.take(), wire.isOver)
  }
  return reader
}

async function doubtful(wire: Wire, { bytes }: RawBytes): Promise<Exchange> {
  wire.write(bytes)
  const reader = new Reader(bytes.includes('HEAD'))
  if (!(await wire.more(quietMs))) wire.finish()
  reader.read(wire.take(), wire.isOver)
  if (reader.answers.length > 0) wire.finish()
  while (!wire.isOver) {
    if (!(await wire.more(quietMs))) wire.finish()
    reader.read(wire.take(), wire.isOver)
  }
  return reader
}

class Reader implements Exchange {
  readonly answers: RawResponse[] = []
  rest = ''
  readonly #withoutBodies: boolean

  /** Answers to HEAD announce a body that is not sent. */
  constructor(withoutBodies: boolean) {
    this.#withoutBodies = withoutBodies
  }

  read(bytes: Buffer, isOver: boolean): void {
    this.rest += bytes.toString('latin1')
    for (let next = this.#next(isOver); next !== undefined; next = this.#next(isOver)) {
      this.rest = this.rest.slice(next.length)
      if (next.response.status === 101 || next.response.status >= 200) this.answers.push(next.response)
    }
  }

  #next(isOver: boolean): ReturnType<typeof parseResponse> {
    // After this status the connection is no longer HTTP.
    if (this.answers.at(-1)?.status === 101) return undefined
    if (!this.#withoutBodies) return parseResponse(this.rest, isOver)
    const start = Math.max(0, this.rest.indexOf('HTTP/1.1 '))
    const end = this.rest.indexOf('\r\n\r\n', start) + 4
    if (end < 4) return undefined
    const head = this.rest.slice(start, end).replace(/\r\n(content-length|transfer-encoding):[^\r]*/gi, '')
    const parsed = parseResponse(head)
    return parsed && { response: { ...parsed.response, body: '' }, length: end }
  }
}
