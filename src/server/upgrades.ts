import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../core/errors.ts'
import type { Lifecycle } from './lifecycle.ts'

/** What a route needs to make a WebSocket of a request. */
export interface Upgrade {
  readonly stream: Socket
  readonly head: Buffer
  /** Lines that its answer carries beside those of WebSocket, as every answer does. */
  headers: readonly string[]
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
    try {
      if (answerOn(stream) !== undefined) closeWhenAnswered(stream)
      else route(server, request, stream, head)
    } catch (err) {
      server.log.error({ err }, 'A request for a WebSocket met a fault')
      stream.destroy()
    }
  })
}

function route(server: FastifyInstance, request: IncomingMessage, stream: Socket, head: Buffer): void {
  request.socketUpgrade = { stream, head, headers: [] }
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(stream)
  response.on('finish', () => {
    stream.end()
    setTimeout(() => stream.destroy(), lingerMs).unref()
  })
  server.routing(request, response)
}

/** Earlier requests on the connection are still being answered: that is all there will be. */
function closeWhenAnswered(stream: Socket): void {
  const answer = answerOn(stream)
  if (answer === undefined) stream.destroySoon()
  else answer.once('close', () => closeWhenAnswered(stream))
}

function answerOn(stream: Socket): ServerResponse | undefined {
  return (stream as Socket & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined
}

/** How long a client that was refused may read our answer before its connection is cut. */
const lingerMs = 1_000

/** Takes the stream of a request for a WebSocket away from HTTP: there will be no answer. */
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
  return upgrade
}

/** What the library would refuse in words of its own. */
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
