import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../core/errors.ts'
import { nodeHttp } from '../lib/node-http.ts'
import { releaseConnection } from './connections.ts'
import type { Lifecycle } from './lifecycle.ts'

/** What a route needs to turn a request into a WebSocket. */
export interface Upgrade {
  readonly stream: Socket
  readonly head: Buffer
  /** Header lines for the handshake response: those that every response has, in addition to those of WebSocket. */
  headers: readonly string[]
}

declare module 'node:http' {
  interface IncomingMessage {
    /** Set if the request asks for a WebSocket. */
    socketUpgrade?: Upgrade
  }
}

export function asksForSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket'
}

/**
 * Sends WebSocket requests through the same hooks as all requests, so that they are counted, refused and logged in the
 * same way. A route that supports WebSockets takes over the socket with `takeUpgrade`; other routes send their usual
 * response.
 */
export function routeUpgrades(server: FastifyInstance): void {
  server.server.on('upgrade', (request: IncomingMessage, stream: Socket, head: Buffer) => {
    stream.on('error', () => {}) // Node no longer handles this stream: an `error` event would end the process
    try {
      if (!endsAfterAnswers(stream)) route(server, request, stream, head)
    } catch (err) {
      server.log.error({ err }, 'A WebSocket request failed with an internal error')
      stream.destroy()
    }
  })
}

function route(server: FastifyInstance, request: IncomingMessage, stream: Socket, head: Buffer): void {
  request.socketUpgrade = { stream, head, headers: [] }
  const response = new nodeHttp.ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(stream)
  response.on('finish', () => {
    stream.end()
    setTimeout(() => stream.destroy(), lingerMs).unref()
  })
  server.routing(request, response)
}

/**
 * If earlier requests on this connection are still in progress, they get their responses, then it is closed. A response to
 * the upgrade request would be taken for one of theirs, so it gets none. The same after the last response of a connection.
 */
export function endsAfterAnswers(stream: Socket): boolean {
  const answer = answerOn(stream)
  answer?.once('close', () => endsAfterAnswers(stream) || stream.destroySoon())
  return answer !== undefined || stream.writableEnded
}

/** The response that is in progress on a connection. */
export function answerOn(stream: Socket): ServerResponse<IncomingMessage> | undefined {
  return (stream as Socket & { _httpMessage?: ServerResponse<IncomingMessage> | null })._httpMessage ?? undefined
}

/** How long a refused client that is still sending may read our response before its connection is closed. */
export const lingerMs = 1_000

/** Takes the stream of a WebSocket request away from HTTP, so that no HTTP response is sent. */
export function takeUpgrade(request: FastifyRequest, reply: FastifyReply, lifecycle: Lifecycle): Upgrade | undefined {
  const { socketUpgrade: upgrade } = request.raw
  if (upgrade === undefined) return undefined
  if (!isHandshake(request.raw)) {
    reply.header('sec-websocket-version', '13')
    throw new AppError('bad-input', 'Malformed WebSocket handshake')
  }
  upgrade.headers = Object.entries(reply.getHeaders()).map(([name, value]) => `${name}: ${value}`)
  reply.hijack()
  reply.raw.detachSocket(upgrade.stream)
  lifecycle.release(reply.raw)
  releaseConnection(upgrade.stream)
  return upgrade
}

/** Checks what the WebSocket library would otherwise refuse with its own error texts. */
function isHandshake({ headers }: IncomingMessage): boolean {
  const {
    'sec-websocket-key': key = '',
    'sec-websocket-version': version,
    'sec-websocket-protocol': protocols,
  } = headers
  return /^[+/0-9A-Za-z]{22}==$/.test(key) && version === '13' && (protocols === undefined || areProtocols(protocols))
}

function areProtocols(list: string): boolean {
  if (!tokens.test(list)) return false
  const names = list.split(',').map(name => name.trim())
  return new Set(names).size === names.length
}

const tokens = /^[\w!#$%&'*+.^`|~-]+(?:\s*,\s*[\w!#$%&'*+.^`|~-]+)*$/
