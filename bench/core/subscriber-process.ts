import { connect, type Socket } from 'node:net'

// Many subscribers of one server, in a process of their own: sockets that do no more than ask, and count the messages
// that come. Each has ids of its own for its subscriptions, as clients choose them.

export type SubscriberOrder =
  /** Opens sockets until there are so many, each with all subscriptions. */
  | { readonly do: 'open'; readonly port: number; readonly count: number; readonly queries: readonly string[] }
  /** Waits for so many messages since the last such order. */
  | { readonly do: 'wait'; readonly messages: number }

/** The answer to `wait`. */
export interface Received {
  /** The first of the messages. */
  readonly sample: string
}

const sockets: Socket[] = []
let received = 0
let wanted = Number.POSITIVE_INFINITY
let reached: () => void = () => {}
let failed: (error: Error) => void = () => {}
let sample: string | undefined

async function open(port: number, count: number, queries: readonly string[]): Promise<void> {
  while (sockets.length < count) {
    const step = Math.min(100, count - sockets.length)
    await Promise.all(Array.from({ length: step }, () => openOne(port, queries)))
  }
}

async function wait(messages: number): Promise<Received> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  wanted = messages
  reached = resolve
  failed = reject
  if (received >= wanted) resolve()
  await promise
  received -= wanted
  wanted = Number.POSITIVE_INFINITY
  const answer = { sample: sample ?? '' }
  sample = undefined
  return answer
}

async function openOne(port: number, queries: readonly string[]): Promise<void> {
  const socket = connect(port, '127.0.0.1').setNoDelay()
  const name = String(sockets.length).padStart(6, '0')
  sockets.push(socket)
  socket.write(handshake)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.on('error', reject)
  let reason = ''
  socket.on('close', () => {
    const error = new Error(`A subscriber was cut off ${reason}`)
    reject(error)
    failed(error)
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
      if (buffer[0] === 0x88)
        reason = `${buffer.readUInt16BE(head)} ${buffer.toString('utf8', head + 2, head + length)}`
      else if (buffer[0] === 0x89) socket.write(masked(buffer.subarray(head, head + length), 0x8a))
      else if (state === 'initialising') {
        state = 'subscribed'
        for (const [at, query] of queries.entries()) {
          socket.write(masked(JSON.stringify({ id: `${name}-${at}`, type: 'subscribe', payload: { query } })))
        }
        resolve()
      } else if (buffer[0] === 0x81) {
        sample ??= buffer.toString('utf8', head, head + length)
        if (++received === wanted) reached()
      }
      buffer = buffer.subarray(head + length)
    }
    if (buffer.length > 0) rest = Buffer.from(buffer)
  })
  await promise
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
function masked(content: string | Buffer, kind = 0x81): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  const head =
    bytes.length < 126
      ? Buffer.from([kind, 0x80 | bytes.length])
      : Buffer.from([kind, 0xfe, bytes.length >> 8, bytes.length & 255])
  return Buffer.concat([head, Buffer.alloc(4), bytes])
}

process.on('message', async (order: SubscriberOrder) => {
  const done = order.do === 'open' ? open(order.port, order.count, order.queries) : wait(order.messages)
  process.send?.(await done.catch(error => ({ failure: String(error) })).then(answer => answer ?? {}))
})
