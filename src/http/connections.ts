import type { IncomingMessage, RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import type { RefusedClients } from '../core/ports.ts'
import { clientKey, type TrustedProxies } from './client-address.ts'

interface ConnectionLimit {
  /** How many connections one client may have open; 0 means no limit. */
  readonly most: number
  /** Connections of these proxies carry many clients, so they are neither counted nor refused. */
  readonly proxies: TrustedProxies
  /** None without a rate limit. */
  readonly refused: RefusedClients | undefined
  /** Called for each connection that is closed at once. */
  readonly onRefused: () => void
}

/** The open connections of this thread, by client. A connection that becomes a WebSocket is no longer one of them. */
export class Connections {
  readonly #limit: ConnectionLimit
  readonly #open = new Map<string, Set<Socket>>()

  constructor(limit: ConnectionLimit) {
    this.#limit = limit
  }

  /**
   * Closes connections of refused clients and those above the limit of a client, without a response. Every open
   * connection takes memory and a file descriptor that other clients could use, and Node parses a whole packet of it
   * before other connections get their turn. Returns whether the connection stays open.
   */
  accept(connection: Socket): boolean {
    const { most, proxies, refused, onRefused } = this.#limit
    const { remoteAddress: address } = connection
    if (address === undefined || proxies.includes(address)) return true
    const client = clientKey(address)
    const own = this.#open.get(client) ?? new Set()
    if (refused?.has(client) === true || (own.size >= most && most > 0)) {
      onRefused()
      connection.destroy()
      return false
    }
    this.#open.set(client, own.add(connection))
    const release = () => {
      if (!own.delete(connection)) return
      if (own.size === 0) this.#open.delete(client)
    }
    connection.on('close', release)
    releases.set(connection, release)
    return true
  }

  /**
   * Refuses a client for some seconds. What its other connections have sent would still be parsed, a packet of each, so
   * they are closed at once, and the answers on them are lost. Returns whether the client was not refused before.
   */
  refuse(client: string, seconds: number, except?: Socket): boolean {
    const isNew = this.#limit.refused?.add(client, seconds) === true
    for (const connection of this.#open.get(client) ?? []) if (connection !== except) connection.destroy()
    return isNew
  }
}

/** Ends the counting of a connection that has become a WebSocket. Those are counted by `graphql/live/sockets.ts`. */
export function releaseConnection(connection: Socket): void {
  releases.get(connection)?.()
}

const releases = new WeakMap<Socket, () => void>()

/** How many pipelined requests of one connection may wait for the requests before them. */
export const pipelineLength = 100

/**
 * Processes the requests of one connection one after the other; their responses must be sent in that order anyway. By
 * default Node starts all requests of a packet, up to some thousands, before any other connection gets its turn. A
 * connection on which more than `pipelineLength` wait is closed. After a response that closes the connection nothing is
 * processed: Node would go on with the packet if it finishes that response between two parts of a body.
 */
export function serveInTurn(serve: RequestListener, onDropped: (request: IncomingMessage) => void): RequestListener {
  const waiting = new WeakMap<Socket, number>()
  return (request, response) => {
    const { socket } = request
    if (socket.writableEnded) return onDropped(request)
    // A response has a socket only when it is its turn.
    if (response.socket !== null) return serve(request, response)
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
