/**
 * Whether a host, with or without a port, is this machine for every browser. No DNS server can decide what these names
 * mean.
 */
export function isLoopbackHost(host: string): boolean {
  return loopback.test(host)
}

const loopback = /^(?:(?:[a-z\d_-]+\.)*localhost\.?|127(?:\.(?:\d\d?|1\d\d|2[0-4]\d|25[0-5])){3}|\[::1\])(?::\d*)?$/i

/** The hosts that requests may name: loopback and the given ones. One without a port stands for all of its ports. */
export function knownHosts(allowed: readonly string[]): (host: string) => boolean {
  const hosts = new Set(allowed)
  return host => {
    if (isLoopbackHost(host)) return true
    const [, name = '', port = ''] = nameAndPort.exec(host.toLowerCase()) ?? []
    return hosts.has(name) || hosts.has(name + port)
  }
}

/** A name may end with a dot, which browsers send along. */
const nameAndPort = /^(\[[\da-f:.]+\]|[^\s:@/[\]]+?)\.?(:\d*)?$/

/** Whether a page of this origin was loaded from this host. */
export function isSameHost(origin: string, host: string | undefined): boolean {
  return origin === `http://${host}` || origin === `https://${host}`
}
