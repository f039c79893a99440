import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Tally } from '../core/ports.ts'
import { clientKey, type TrustedProxies } from './client-address.ts'

export interface ConnectionLimit {
  /** How many connections one client may have open; 0 means no limit. */
  readonly most: number
  /** Connections of these proxies carry many clients, so they are not counted. */
  readonly proxies: TrustedProxies
  readonly onRefused: () => void
  readonly tally: Tally
}

/**
 * Closes connections above the limit of a client, without a response, because every open connection takes memory and a
 * file descriptor that other clients could use. A connection that becomes a WebSocket is no longer counted here.
 */
export function limitConnections(server: Server, { most, proxies, onRefused, tally }: ConnectionLimit): void {
  if (most === 0) return
  const clients = new Map<Socket, string>()
  const release = (connection: Socket) => {
    const client = clients.get(connection)
    if (client === undefined) return
    clients.delete(connection)
    tally.add(client, -1)
  }
  server.on('connection', connection => {
    const { remoteAddress: address } = connection
    if (address === undefined || proxies.includes(address)) return
    const client = clientKey(address)
    if (tally.add(client, 1) > most) {
      tally.add(client, -1)
      onRefused()
      connection.destroy()
      return
    }
    clients.set(connection, client)
    connection.on('close', () => release(connection))
    releases.set(connection, () => release(connection))
  })
}

/** Ends the counting of a connection that has become a WebSocket. Those are counted by `graphql/socket/sockets.ts`. */
export function releaseConnection(connection: Socket): void {
  releases.get(connection)?.()
}

const releases = new WeakMap<Socket, () => void>()
