import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Lifecycle } from './lifecycle.ts'

/** What a route needs to make a WebSocket of a request. */
export interface Upgrade {
  readonly stream: Socket
  readonly head: Buffer
}

declare module 'node:http' {
  interface IncomingMessage {
    /** Of a request that asks for a WebSocket. */
    socketUpgrade?: Upgrade
  }
}

export function asksForSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket'
}

/**
 * Lets requests for a WebSocket go the way of all requests, so that they are counted, refused and logged alike. A route
 * that makes sockets takes theirs over with `takeUpgrade`; from any other they get its ordinary answer.
 */
export function routeUpgrades(server: FastifyInstance): void {
  server.server.on('upgrade', (request: IncomingMessage, stream: Socket, head: Buffer) => {
    stream.on('error', () => {}) // Node has let go of the stream: an error of it would end the process
    request.socketUpgrade = { stream, head }
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(stream)
    response.on('finish', () => stream.end())
    server.routing(request, response)
  })
}

/** Takes the stream of a request for a WebSocket away from HTTP: there will be no answer. */
export function takeUpgrade(request: FastifyRequest, reply: FastifyReply, lifecycle: Lifecycle): Upgrade | undefined {
  const { socketUpgrade: upgrade } = request.raw
  if (upgrade === undefined) return undefined
  reply.hijack()
  reply.raw.detachSocket(upgrade.stream)
  lifecycle.release(reply.raw)
  return upgrade
}
