import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** A port that was free a moment ago, for tests that need the port before the server starts. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  return port
}
