/**
 * The message of an event for many subscribers. The messages differ only in the subscription's id, which comes first.
 * Each WebSocket frame is the frame header, the id and the same bytes. Clients that number their operations use the
 * same ids: the next subscriber with the same id gets the same frame.
 */
export class EventMessage {
  readonly #rest: Buffer
  #id: string | undefined
  #frame: Buffer | undefined

  constructor(data: string, position?: string) {
    const extensions = position === undefined ? '' : `,"extensions":{"position":"${position}"}`
    this.#rest = Buffer.from(`,"type":"next","payload":{"data":${data}${extensions}}}`)
  }

  /** `id` is the subscription's id as JSON. */
  frame(id: string): Buffer {
    if (this.#frame !== undefined && id === this.#id) return this.#frame
    const start = `{"id":${id}`
    const startLength = Buffer.byteLength(start)
    const length = startLength + this.#rest.length
    const head = length < 126 ? 2 : length < 65_536 ? 4 : 10
    const frame = Buffer.allocUnsafe(head + length)
    frame[0] = 0x81 // final frame, text
    frame[1] = head === 2 ? length : head === 4 ? 126 : 127
    if (head === 4) frame.writeUInt16BE(length, 2)
    else if (head === 10) frame.writeBigUInt64BE(BigInt(length), 2)
    frame.write(start, head)
    frame.set(this.#rest, head + startLength)
    this.#id = id
    this.#frame = frame
    return frame
  }
}
