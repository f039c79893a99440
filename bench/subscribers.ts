import { connect, type Socket } from 'node:net'

/** Many subscribers of one server: sockets that do no more than ask once and count the messages that come. */
export class Subscribers implements Disposable {
  readonly #sockets: Socket[] = []
  /** Messages of type `next`, all subscribers together. */
  received = 0
  #wanted = Number.POSITIVE_INFINITY
  #reached: () => void = () => {}
  #failed: (error: Error) => void = () => {}

  static async open(port: number, count: number, query: string): Promise<Subscribers> {
    const subscribers = new Subscribers()
    for (let from = 0; from < count; from += 100) {
      await Promise.all(Array.from({ length: Math.min(100, count - from) }, () => subscribers.#open(port, query)))
    }
    return subscribers
  }

  /** Settles when so many messages have come in all. */
  reach(count: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#wanted = count
    this.#reached = resolve
    this.#failed = reject
    if (this.received >= count) resolve()
    return promise
  }

  async #open(port: number, query: string): Promise<void> {
    const socket = connect(port, '127.0.0.1').setNoDelay()
    this.#sockets.push(socket)
    socket.write(handshake)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    socket.on('error', reject)
    socket.on('close', () => {
      const error = new Error('A subscriber was cut off')
      reject(error)
      this.#failed(error)
    })
    let rest: Buffer | undefined
    let state: 'shaking hands' | 'initialising' | 'subscribed' = 'shaking hands'
    socket.on('data', data => {
      let buffer = rest === undefined ? data : Buffer.concat([rest, data])
      rest = undefined
      if (state === 'shaking hands') {
        const end = buffer.indexOf('\r\n\r\n')
        if (end < 0) {
          rest = buffer
          return
        }
        if (!buffer.toString('latin1', 0, 12).endsWith('101')) return reject(new Error(buffer.toString('latin1')))
        buffer = buffer.subarray(end + 4)
        state = 'initialising'
        socket.write(masked('{"type":"connection_init"}'))
      }
      while (buffer.length >= 2) {
        const short = (buffer[1] ?? 0) & 127
        const head = short < 126 ? 2 : short === 126 ? 4 : 10
        if (buffer.length < head) break
        const length = short < 126 ? short : short === 126 ? buffer.readUInt16BE(2) : buffer.readUInt32BE(6)
        if (buffer.length < head + length) break
        if (buffer[0] === 0x89) socket.write(masked(buffer.toString('latin1', head, head + length), 0x8a))
        else if (state === 'initialising') {
          state = 'subscribed'
          socket.write(masked(JSON.stringify({ id: '1', type: 'subscribe', payload: { query } })))
          resolve()
        } else if (buffer[0] === 0x81 && ++this.received === this.#wanted) this.#reached()
        buffer = buffer.subarray(head + length)
      }
      if (buffer.length > 0) rest = Buffer.from(buffer)
    })
    await promise
  }

  [Symbol.dispose](): void {
    this.#failed = () => {}
    for (const socket of this.#sockets) socket.destroy()
  }
}

const handshake = [
  'GET /graphql HTTP/1.1',
  'Host: 127.0.0.1',
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Protocol: graphql-transport-ws',
  '\r\n',
].join('\r\n')

/** A frame as clients send it, with a mask of zeros: a text, or the answer to a ping. */
function masked(text: string, kind = 0x81): Buffer {
  const bytes = Buffer.from(text)
  const head =
    bytes.length < 126
      ? Buffer.from([kind, 0x80 | bytes.length])
      : Buffer.from([kind, 0xfe, bytes.length >> 8, bytes.length & 255])
  return Buffer.concat([head, Buffer.alloc(4), bytes])
}
