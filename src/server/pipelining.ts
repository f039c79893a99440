import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** How many pipelined requests of one connection may wait for the requests before them. */
export const pipelineLength = 100

/**
 * Processes the requests of one connection one after the other; their responses must be sent in that order anyway. By
 * default Node starts all requests of a packet, up to some thousands, before any other connection gets its turn. Above
 * `pipelineLength` no more requests are accepted: the waiting ones are answered, the last one with `Connection: close`.
 */
export function serveInTurn(server: Server): void {
  const [serve] = server.listeners('request') as RequestListener[]
  if (serve === undefined) throw new Error('The server has no request listener yet')
  const pipelines = new WeakMap<Socket, Pipeline>()
  server.removeListener('request', serve)
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    // A response has a socket only when it is its turn.
    if (response.socket !== null) return serve(request, response)
    const { socket } = request
    const pipeline = pipelines.get(socket) ?? { waiting: 0, dropped: 0, last: response }
    pipelines.set(socket, pipeline)
    if (pipeline.waiting >= pipelineLength || pipeline.dropped > 0) return refuse(pipeline, socket)
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
  dropped: number
  last: ServerResponse
}

/** More than one packet can contain. Above this, the client's data still arrives although reading is paused. */
const mostDropped = 5_000

function refuse(pipeline: Pipeline, socket: Socket & { _paused?: boolean }): void {
  pipeline.last.shouldKeepAlive = false
  socket._paused = true // otherwise Node resumes reading after every request
  socket.pause()
  if (++pipeline.dropped > mostDropped) socket.destroy()
}
