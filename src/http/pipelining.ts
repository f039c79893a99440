import type { IncomingMessage, RequestListener } from 'node:http'
import type { Socket } from 'node:net'

/** How many pipelined requests of one connection may wait for the requests before them. */
export const pipelineLength = 100

/**
 * Processes the requests of one connection one after the other; their responses must be sent in that order anyway. By
 * default Node starts all requests of a packet, up to some thousands, before any other connection gets its turn. A
 * connection on which more than `pipelineLength` wait is closed.
 */
export function serveInTurn(serve: RequestListener, onDropped: (request: IncomingMessage) => void): RequestListener {
  const waiting = new WeakMap<Socket, number>()
  return (request, response) => {
    // A response has a socket only when it is its turn.
    if (response.socket !== null) return serve(request, response)
    const { socket } = request
    const count = waiting.get(socket) ?? 0
    if (count >= pipelineLength) {
      if (!socket.destroyed) for (let dropped = 0; dropped < count; dropped++) onDropped(request)
      socket.destroy()
      return onDropped(request)
    }
    waiting.set(socket, count + 1)
    response.once('socket', () => {
      waiting.set(socket, (waiting.get(socket) ?? 0) - 1)
      serve(request, response)
    })
  }
}
