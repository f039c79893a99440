import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import proxyAddr from '@fastify/proxy-addr'
import ipaddr from 'ipaddr.js'

/** The proxies whose `X-Forwarded-For` header is trusted, as addresses and CIDR ranges. */
export class TrustedProxies {
  readonly #trusts: ((address: string, hop: number) => boolean) | undefined

  constructor(ranges: readonly string[]) {
    if (ranges.length > 0) this.#trusts = proxyAddr.compile(ranges.flatMap(range => withoutZero(range)))
  }

  /**
   * The address of the client. If the sender is not a trusted proxy, it is the sender. Otherwise it is the right-most
   * address in the header that is not a trusted proxy, or if there is none, the farthest trusted proxy. An entry that
   * is not an address ends the search.
   */
  clientOf(request: Pick<IncomingMessage, 'socket' | 'headers'>): string {
    const { socket, headers } = request
    const { remoteAddress: sender = '' } = socket
    if (this.#trusts === undefined || headers['x-forwarded-for'] === undefined) return sender
    return proxyAddr.all(request as IncomingMessage, this.#trusts).findLast(address => isIP(address) !== 0) ?? sender
  }

  keyOf(request: Pick<IncomingMessage, 'socket' | 'headers'>): string {
    return clientKey(this.clientOf(request))
  }

  includes(address: string): boolean {
    return this.#trusts?.(address, 0) ?? false
  }
}

/**
 * The key that identifies a client: an IPv4 address, also if it is written as IPv6 (`::ffff:1.2.3.4`, on a dual-stack
 * socket), or the /64 network of an IPv6 address, because an IPv6 client can use any address in its /64.
 */
export function clientKey(address: string): string {
  if (!address.includes(':')) return address
  const client = ipaddr.process(address.replace(/%.*/, '')) // without the name of a network interface
  if (client instanceof ipaddr.IPv4) return client.toString()
  return client.toNormalizedString().split(':', 4).join(':')
}

/** The package knows no range of all addresses, but both halves of it. */
function withoutZero(range: string): readonly string[] {
  if (!/\/0+$/.test(range)) return [range]
  return range.includes(':') ? ['::/1', '8000::/1'] : ['0.0.0.0/1', '128.0.0.0/1']
}
