import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv4 } from 'node:net'

/** Proxies whose `X-Forwarded-For` is believed: addresses and CIDR ranges. */
export class TrustedProxies {
  readonly #list = new BlockList()
  readonly #none: boolean

  constructor(ranges: readonly string[]) {
    this.#none = ranges.length === 0
    for (const range of ranges) {
      const [address = '', prefix] = range.split('/')
      const family = isIPv4(address) ? 'ipv4' : 'ipv6'
      if (prefix === undefined) this.#list.addAddress(address, family)
      else this.#list.addSubnet(address, Number(prefix), family)
    }
  }

  /** The right-most address that is not one of the proxies. Without trust in the sender, the sender. */
  clientOf({ socket, headers }: IncomingMessage): string {
    const sender = plain(socket.remoteAddress ?? '')
    const forwarded = headers['x-forwarded-for']
    if (this.#none || forwarded === undefined || !this.#includes(sender)) return sender
    const hops = String(forwarded)
      .split(',')
      .map(hop => plain(hop.trim()))
    for (const hop of hops.reverse()) {
      if (isIP(hop) === 0) break
      if (!this.#includes(hop)) return hop
    }
    return sender
  }

  #includes(address: string): boolean {
    const family = isIP(address)
    return family !== 0 && this.#list.check(address, family === 4 ? 'ipv4' : 'ipv6')
  }
}

/** What counts as one client: an IPv4 address, or the /64 that an IPv6 client can choose its addresses from. */
export function clientKey(address: string): string {
  if (!address.includes(':')) return address
  const [head = '', tail] = address.split('%', 1)[0]?.split('::') ?? []
  const groups = head.split(':').filter(group => group !== '')
  const after = tail === undefined ? [] : tail.split(':').filter(group => group !== '')
  while (tail !== undefined && groups.length + after.length < 8) groups.push('0')
  return [...groups, ...after]
    .slice(0, 4)
    .map(group => Number.parseInt(group, 16).toString(16))
    .join(':')
}

// A client that speaks IPv4 to a socket of both kinds is still the same client.
function plain(address: string): string {
  return address.toLowerCase().startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}
