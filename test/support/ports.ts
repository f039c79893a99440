import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'

/**
 * A port that was free a moment ago, for tests that need the port before the server starts. It is below those that the
 * system gives to outgoing connections, so no other test's connection takes it before the server does.
 */
export async function freePort(): Promise<number> {
  const port = randomInt(16_384, 32_768)
  await using probe = createServer()
  return await once(probe.listen(port, '127.0.0.1'), 'listening').then(() => port, freePort)
}

/** Makes a server listen on a free port of the loopback interface. Returns the port. */
export async function listen(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}

/** A server that says what the test wants on each connection, by default nothing. Its end cuts them. */
export async function serveConnections(greet: (socket: Socket) => void = () => {}) {
  const connections = new Set<Socket>()
  const server = createServer(socket => {
    connections.add(socket.on('error', () => {}).on('close', () => connections.delete(socket)))
    greet(socket)
  })
  const stop = async () => {
    for (const socket of connections) socket.destroy()
    await once(server.close(), 'close')
  }
  return { port: await listen(server), connections, [Symbol.asyncDispose]: stop }
}
