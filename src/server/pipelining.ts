import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** How many pipelined requests of one connection may wait for the requests before them. */
export const pipelineLength = 100

/**
 * Processes the requests of one connection one after the other; their responses must be sent in that order anyway. By
 * default Node starts all requests of a packet, up to some thousands, before any other connection gets its turn. Above
 * `pipelineLength` no more requests are accepted: the waiting ones are answered, the last one with `Connection: close`.
 */
export function serveInTurn(server: Server, onDropped: (request: IncomingMessage) => void): void {
  const [serve] = server.listeners('request') as RequestListener[]
  if (serve === undefined) throw new Error('The server has no request listener yet')
  const pipelines = new WeakMap<Socket, Pipeline>()
  server.removeListener('request', serve)
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    // A response has a socket only when it is its turn.
    if (response.socket !== null) return serve(request, response)
    const { socket } = request
    const pipeline = pipelines.get(socket) ?? { waiting: 0, last: response }
    pipelines.set(socket, pipeline)
    if (pipeline.waiting >= pipelineLength) {
      stopReading(socket)
      pipeline.last.shouldKeepAlive = false
      return onDropped(request)
    }
    pipeline.waiting++
    pipeline.last = response
    response.once('socket', () => {
      pipeline.waiting--
      serve(request, response)
    })
  })
}

interface Pipeline {
  waiting: number
  last: ServerResponse
}

/** Also drops the rest of the packet. To Node's parser, 2 means that what follows these headers is not HTTP. */
function stopReading(socket: Socket & { _paused?: boolean; parser?: { onIncoming: () => number } | null }): void {
  if (socket.parser) socket.parser.onIncoming = () => 2
  socket._paused = true // otherwise Node resumes reading after every request
  socket.pause()
}
