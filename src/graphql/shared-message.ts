/**
 * An event as many are told it: messages that differ in nothing but the subscription's id, which comes first. The frame of
 * each, ready for the socket, is its head, the id and the bytes that all of them share.
 */
export class SharedMessage {
  readonly #rest: Buffer

  constructor(data: string) {
    this.#rest = Buffer.from(`,"type":"next","payload":{"data":${data}}}`)
  }

  /** `start` is what `startOf` gave for the subscription's id. */
  frame(start: Buffer): Buffer {
    const length = start.length + this.#rest.length
    const head = length < 126 ? 2 : length < 65_536 ? 4 : 10
    const frame = Buffer.allocUnsafe(head + length)
    frame[0] = 0x81 // a whole message of text
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

/** The beginning of every message to a subscription. */
export function startOf(id: string): Buffer {
  return Buffer.from(`{"id":${JSON.stringify(id)}`)
}
