/**
 * The message of an event for many subscribers. The messages differ only in the subscription's id, which comes first.
 * Each WebSocket frame is the frame header, the id and the shared bytes. The next subscriber with the same id gets the
 * same frame.
 */
export class SharedMessage {
  readonly #rest: Buffer
  #start: Buffer | undefined
  #frame: Buffer = none

  constructor(data: string, position?: string) {
    const extensions = position === undefined ? '' : `,"extensions":{"position":"${position}"}`
    this.#rest = Buffer.from(`,"type":"next","payload":{"data":${data}${extensions}}}`)
  }

  get bytes(): number {
    return this.#rest.length
  }

  /** `start` is the result of `startOf` for the subscription's id. */
  frame(start: Buffer): Buffer {
    if (start !== this.#start) {
      this.#start = start
      this.#frame = this.#make(start)
    }
    return this.#frame
  }

  #make(start: Buffer): Buffer {
    const length = start.length + this.#rest.length
    const head = length < 126 ? 2 : length < 65_536 ? 4 : 10
    const frame = Buffer.allocUnsafe(head + length)
    frame[0] = 0x81 // final frame, text
    if (head === 2) frame[1] = length
    else if (head === 4) {
      frame[1] = 126
      frame.writeUInt16BE(length, 2)
    } else {
      frame[1] = 127
      frame.writeUInt32BE(0, 2)
      frame.writeUInt32BE(length, 6)
    }
    frame.set(start, head)
    frame.set(this.#rest, head + start.length)
    return frame
  }
}

const none = Buffer.alloc(0)

/**
 * The first bytes of every message to a subscription. Clients that number their operations use the same small ids, so
 * the bytes for short ids are cached.
 */
export function startOf(id: string): Buffer {
  if (id.length > 2) return newStart(id)
  const known = shortStarts.get(id) ?? newStart(id)
  if (shortStarts.size < mostShort) shortStarts.set(id, known)
  return known
}

const shortStarts = new Map<string, Buffer>()
const mostShort = 100

function newStart(id: string): Buffer {
  return Buffer.from(`{"id":${JSON.stringify(id)}`)
}
