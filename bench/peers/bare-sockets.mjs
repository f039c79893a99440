import { createHash } from 'node:crypto'
import { createServer } from 'node:http'

// The least that can tell an event to many: sockets that were shaken hands with, and a loop that writes a prepared frame
// to each. A POST makes an event; its body is the text of the message, whose id all subscribers share.
const sockets = new Set()

const server = createServer((request, response) => {
  const parts = []
  request.on('data', part => parts.push(part))
  request.on('end', () => {
    const text = Buffer.concat(parts)
    const frame = frameOf(text)
    for (const socket of sockets) socket.write(frame)
    response.end('{}')
  })
})

server.on('upgrade', (request, socket) => {
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\nSec-WebSocket-Accept: ${createHash('sha1').update(key).digest('base64')}\r\n\r\n`,
  )
  sockets.add(socket)
  let told = false
  socket.on('data', () => {
    if (!told) socket.write(frameOf(Buffer.from('{"type":"connection_ack"}')))
    told = true
  })
  socket.on('error', () => {})
  socket.on('close', () => sockets.delete(socket))
})

function frameOf(text) {
  const head =
    text.length < 126 ? Buffer.from([0x81, text.length]) : Buffer.from([0x81, 126, text.length >> 8, text.length & 255])
  return Buffer.concat([head, text])
}

server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/health`))
