import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv4 } from 'node:net'

/** The proxies whose `X-Forwarded-For` header is trusted, as addresses and CIDR ranges. */
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

  /**
   * The address of the client. If the sender is not a trusted proxy, it is the sender. Otherwise it is the right-most
   * address in the header that is not a trusted proxy, or if there is none, the farthest trusted proxy. An entry that
   * is not an address ends the search.
   */
  clientOf({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): string {
    const sender = plain(socket.remoteAddress ?? '')
    const forwarded = headers['x-forwarded-for']
    if (this.#none || forwarded === undefined || !this.includes(sender)) return sender
    let farthest = sender
    for (const entry of String(forwarded).split(',').reverse()) {
      const hop = plain(entry.trim())
      if (isIP(hop) === 0) break
      farthest = hop
      if (!this.includes(hop)) break
    }
    return farthest
  }

  /** Whether a trusted proxy sent this request, so that its other headers can be trusted too. */
  sent({ socket }: IncomingMessage): boolean {
    return this.includes(plain(socket.remoteAddress ?? ''))
  }

  includes(address: string): boolean {
    if (this.#none) return false
    const family = isIP(address)
    return family !== 0 && this.#list.check(address, family === 4 ? 'ipv4' : 'ipv6')
  }
}

/**
 * The key that identifies a client: an IPv4 address, or the /64 network of an IPv6 address, because an IPv6 client can
 * use any address in its /64.
 */
export function clientKey(address: string): string {
  const client = plain(address)
  return client.includes(':') ? groupsOf(client).slice(0, 4).join(':') : client
}

// On a dual-stack socket an IPv4 address is written as IPv6 (`::ffff:1.2.3.4`). Both forms must give the same client.
function plain(address: string): string {
  if (!address.includes(':') || isIP(address) === 0) return address
  const groups = groupsOf(address)
  if (groups.slice(0, 6).join(':') !== '0:0:0:0:0:ffff') return address
  return groups.slice(6).map(bytesOf).join('.')
}

/** The eight groups of an IPv6 address, in their shortest form. */
function groupsOf(address: string): readonly string[] {
  const [bare = ''] = address.split('%', 1)
  const hexadecimal = bare.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...bytes) => {
    const [a = 0, b = 0, c = 0, d = 0] = bytes.map(Number)
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
  })
  const [head = [], tail = []] = hexadecimal.split('::').map(part => part.split(':').filter(group => group !== ''))
  const zeros = Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0')
  return [...head, ...zeros, ...tail].map(group => Number.parseInt(group, 16).toString(16))
}

function bytesOf(group: string): string {
  const value = Number.parseInt(group, 16)
  return `${value >> 8}.${value & 255}`
}
