import type { Sockets } from '../graphql/live/sockets.ts'
import type { Lifecycle } from '../http/lifecycle.ts'
import type { MetricsOfThread } from '../http/metrics.ts'
import type { TokenKeys } from '../security/keys.ts'
import type { JwtSigner } from '../security/tokens.ts'
import type { Base } from './base.ts'

/** A running server. Disposing it stops the server without losing a request, then closes the store. */
export interface App extends AsyncDisposable {
  readonly url: string
  /** Whether the demo data exists and its public login still works. */
  readonly demoLoginWorks: boolean
  /** Resolves when all threads know it. */
  toggleMaintenance(): Promise<void>
  /** Reads the token keys again, if they are in a file. Keys that cannot be read change nothing. */
  reloadKeys(): Promise<void>
  /** Like disposing, but refuses new requests at once, without the drain time in which clients can move away. */
  stopAtOnce(): Promise<void>
}

/** A server that may be one of several threads of a process. */
export interface ThreadApp extends App {
  setMaintenance(on: boolean): void
  metrics(): Promise<MetricsOfThread>
}

interface RunningParts extends Pick<App, 'url' | 'demoLoginWorks'> {
  readonly lifecycle: Lifecycle
  readonly sockets: Sockets
  readonly signer: JwtSigner
  readonly readKeys: () => Promise<TokenKeys>
  readonly stop: () => Promise<void>
}

/** What an operator can do with a server that has started. */
export function running({ logger, metrics }: Base, parts: RunningParts): ThreadApp {
  const { url, demoLoginWorks, lifecycle, sockets, signer, readKeys, stop } = parts
  const setMaintenance = (on: boolean) => {
    lifecycle.maintenance = on
    if (on) sockets.closeAll(1013, 'Service under maintenance')
  }
  return {
    url,
    demoLoginWorks,
    async toggleMaintenance() {
      setMaintenance(!lifecycle.maintenance)
      logger.warn({ maintenance: lifecycle.maintenance }, 'Maintenance was toggled')
    },
    setMaintenance,
    metrics: () => metrics.ofThread(),
    async reloadKeys() {
      try {
        signer.use(await readKeys())
        sockets.revokeKeys()
        logger.info('The token keys were read again')
      } catch (err) {
        logger.error({ err }, 'The token keys could not be read again; the old ones stay in use')
      }
    },
    stopAtOnce() {
      lifecycle.drainMs = 0
      return stop()
    },
    [Symbol.asyncDispose]: stop,
  }
}
