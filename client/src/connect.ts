import { unlessAborted } from './abort.ts'
import { type Clock, systemClock } from './clock.ts'
import { isDuetError } from './errors.ts'
import { type Answer, type CallOptions, type RequestEntry, sender } from './http.ts'
import { internals } from './internals.ts'
import { notify } from './notify.ts'
import { type Session, SessionKeeper, type SessionListener, type TokenStorage } from './session.ts'
import type { SocketConstructor } from './socket.ts'

export interface ConnectOptions {
  /** The address of the service, such as `http://127.0.0.1:4000`. In a page it may be relative to the page. */
  readonly url: string | URL
  /** Default: the global one. */
  readonly fetch?: typeof globalThis.fetch
  /** Used by subscriptions only. Default: the global one, which browsers and Node 22 have. */
  readonly WebSocket?: SocketConstructor
  /** Stores the token. Default: it is in memory only. */
  readonly storage?: TokenStorage
  /** Called after each request, retries included. */
  readonly onRequest?: (entry: RequestEntry) => void
  /** Called when the session has ended: by `signOut`, or because the service no longer accepts its token. */
  readonly onSignedOut?: (why: 'signOut' | 'ended') => void
  /** The timeout of a request in milliseconds. Default: 30 seconds. */
  readonly timeoutMs?: number
  /** For tests: time and timers. */
  readonly clock?: Clock
}

export interface Credentials {
  readonly email: string
  readonly password: string
}

/** A connection to one service with at most one session. The functions of each area take it as their argument. */
export interface Duet {
  readonly url: string
  /** The current session, if a user is signed in. */
  readonly session: Session | undefined
  signIn(credentials: Credentials): Promise<Session>
  /** Forgets the token. `everywhere`: the service ends all sessions of the user, on every device. */
  signOut(options?: { readonly everywhere?: boolean }): Promise<void>
  /** Calls the listener after each sign-in, renewal and end of a session. Returns a function that removes the listener. */
  onSession(listener: SessionListener): () => void
  /**
   * Sends one request to the service, for paths that no area covers. A path is relative to the service. Rejects with a
   * `DuetError` for a status of 400 or above.
   */
  request<Body = unknown>(method: string, path: string | URL, options?: CallOptions): Promise<Answer<Body>>
  /** Ends all subscriptions, and stops renewing the token. */
  close(): void
}

export function connect(options: ConnectOptions): Duet {
  const { storage = nowhere, clock = systemClock, onRequest, onSignedOut, timeoutMs = 30_000 } = options
  const page = (globalThis as { location?: { href: string } }).location?.href
  const url = new URL(options.url, page).href.replace(/\/+$/, '')
  const fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init))
  const send = sender({ url, fetch, clock, timeoutMs, onRequest })
  const keeper = new SessionKeeper(send, storage, clock)
  const closing = new Set<() => void>([() => keeper.close()])
  keeper.listen((session, change) => {
    if (session === undefined) notify([onSignedOut], change === 'ended' ? 'ended' : 'signOut')
  })

  const duet: Duet = {
    url,
    get session() {
      return keeper.session
    },
    signIn: ({ email, password }) => keeper.signIn({ email, password }),
    signOut: ({ everywhere = false } = {}) => keeper.signOut(everywhere),
    onSession: listener => keeper.listen(listener),
    async request<Body>(method: string, path: string | URL, call: CallOptions = {}) {
      const token = await unlessAborted(keeper.current(), call.signal)
      try {
        return await send<Body>(method, path, { ...call, token })
      } catch (error) {
        if (token === undefined || !isDuetError(error, 'unauthenticated')) throw error
        // The token may have expired on the way. A refused request has done nothing, so it may be sent again.
        const next = await unlessAborted(keeper.afterRefusal(token), call.signal)
        if (next === undefined) throw error
        return await send<Body>(method, path, { ...call, token: next })
      }
    },
    close() {
      const all = [...closing]
      closing.clear()
      notify(all)
    },
  }
  internals.set(duet, { clock, keeper, closing, WebSocket: options.WebSocket })
  return duet
}

const nowhere: TokenStorage = { get: () => undefined, set() {} }
