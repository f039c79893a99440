import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** How many requests that were sent ahead on one connection wait for those before them. */
export const pipelineLength = 100

/**
 * Serves the requests of one connection one after the other, as their answers must be sent anyway. Node would start all
 * that arrive in one packet, some thousands, before any other connection gets its turn. Beyond `pipelineLength` nothing
 * more is taken: those that wait are answered, the last one with `Connection: close`.
 */
export function serveInTurn(server: Server): void {
  const [serve] = server.listeners('request') as RequestListener[]
  if (serve === undefined) throw new Error('The server serves nothing yet')
  const pipelines = new WeakMap<Socket, Pipeline>()
  server.removeListener('request', serve)
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    // Only an answer whose turn it is has a socket.
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

/** More than one packet can bring: the client's bytes come in although we do not want to read them. */
const mostDropped = 5_000

function refuse(pipeline: Pipeline, socket: Socket & { _paused?: boolean }): void {
  pipeline.last.shouldKeepAlive = false
  socket._paused = true // or Node reads on after every request
  socket.pause()
  if (++pipeline.dropped > mostDropped) socket.destroy()
}
