import type { Clock } from './clock.ts'
import { DuetError, isDuetError } from './errors.ts'
import type { Send } from './http.ts'
import { listen, notify } from './notify.ts'

/** Stores a token between visits. */
export interface TokenStorage {
  get(): string | null | undefined
  /** `undefined` deletes it. */
  set(token: string | undefined): void
  /** Calls the function after somebody else, such as another tab, has changed the token. */
  watch?(changed: () => void): void
}

export interface Session {
  readonly userId: number
  readonly role: string
  /** When the current token expires, in milliseconds since 1970. It is renewed before. */
  readonly expiresAt: number
}

export type SessionChange = 'signedIn' | 'renewed' | 'signedOut' | 'ended'
export type SessionListener = (session: Session | undefined, change: SessionChange) => void

/** What a browser tells a page after another one has changed a storage. Without a key, all of it was deleted. */
interface StorageChange {
  readonly storageArea: unknown
  readonly key: string | null
}

/** Keeps the token in `sessionStorage`, or in `localStorage`: then all tabs have one session. */
export function keepIn(
  storage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>,
  name = 'duet-token',
): TokenStorage {
  return {
    get: () => storage.getItem(name),
    set: token => (token === undefined ? storage.removeItem(name) : storage.setItem(name, token)),
    watch(changed) {
      const page = globalThis as {
        addEventListener?: (name: 'storage', listen: (event: StorageChange) => void) => void
      }
      page.addEventListener?.('storage', ({ storageArea, key }) => {
        if (storageArea === storage && (key === name || key === null)) changed()
      })
    },
  }
}

interface Token extends Session {
  readonly text: string
  readonly renewAt: number
}

/** Holds the token, renews it in time, and detects the end of the session. */
export class SessionKeeper {
  readonly #send: Send
  readonly #storage: TokenStorage
  readonly #clock: Clock
  readonly #listeners = new Set<SessionListener>()
  #token: Token | undefined
  /** The same object until the session changes, as views need it. */
  #session: Session | undefined
  #renewal: Promise<void> | undefined
  #cancelTimer = () => {}
  #isClosed = false

  constructor(send: Send, storage: TokenStorage, clock: Clock) {
    this.#send = send
    this.#storage = storage
    this.#clock = clock
    this.#token = tokenIn(storage.get())
    this.#session = this.#token && sessionOf(this.#token)
    this.#schedule()
    storage.watch?.(() => this.#adopt(tokenIn(storage.get())))
  }

  get session(): Session | undefined {
    return this.#session
  }

  listen(listener: SessionListener): () => void {
    return listen(this.#listeners, listener)
  }

  async signIn(credentials: object): Promise<Session> {
    const { body } = await this.#send<{ token: string }>('POST', '/tokens', { body: credentials, expect: 'json' })
    const token = tokenOf(body, this.#clock.now())
    this.#change(token, 'signedIn')
    return sessionOf(token)
  }

  async signOut(everywhere: boolean): Promise<void> {
    const userId = this.#token?.userId
    const token = everywhere ? await this.current() : undefined
    try {
      if (token !== undefined) await this.#send('DELETE', '/tokens', { token, expect: 'nothing' })
    } catch (error) {
      // The session ends here, but the caller must know that other devices may still be signed in.
      if (isDuetError(error, 'unauthenticated')) this.#end(userId, 'ended')
      throw error
    }
    this.#end(userId, 'signedOut')
  }

  /** The token for the next request. Rejects if the session has ended. */
  async current(): Promise<string | undefined> {
    if (this.#token === undefined) return undefined
    const { renewAt, expiresAt, userId } = this.#token
    const now = this.#clock.now()
    if (now >= renewAt) this.#renew()
    // While the old token is valid, requests do not wait for the new one.
    if (now >= expiresAt) await this.#renewal
    return this.#textFor(userId) ?? Promise.reject(sessionEnded())
  }

  /**
   * Called after a request with this token was refused with 401. Returns another token of the same user for a second
   * attempt, if any.
   */
  async afterRefusal(token: string): Promise<string | undefined> {
    // The renewal decides whether the session has ended, because some paths refuse a valid token.
    if (this.#token?.text === token) await this.#renew()
    const next = this.#textFor(tokenIn(token)?.userId)
    return next === token ? undefined : next
  }

  close(): void {
    this.#isClosed = true
    this.#cancelTimer()
  }

  #textFor(userId: number | undefined): string | undefined {
    const current = this.#token
    return current !== undefined && current.userId === userId ? current.text : undefined
  }

  /** Ends the session of this user, unless another user has signed in meanwhile. */
  #end(userId: number | undefined, change: SessionChange): void {
    if (this.#textFor(userId) !== undefined) this.#change(undefined, change)
  }

  #renew(): Promise<void> {
    this.#renewal ??= this.#renewNow().finally(() => {
      this.#renewal = undefined
    })
    return this.#renewal
  }

  async #renewNow(): Promise<void> {
    const old = this.#token
    if (old === undefined) return
    try {
      const { body } = await this.#send<{ token: string }>('POST', '/tokens', { token: old.text, expect: 'json' })
      const renewed = tokenOf(body, this.#clock.now())
      if (this.#token === old) this.#change(renewed, 'renewed')
    } catch (error) {
      if (this.#token !== old) return // the user has signed in or out meanwhile
      if (isDuetError(error, 'unauthenticated')) return this.#adoptOrEnd(old)
      this.#token = { ...old, renewAt: this.#clock.now() + retryMs * (0.5 + Math.random()) }
      this.#schedule()
    }
  }

  #change(token: Token | undefined, change: SessionChange): void {
    notify([() => this.#storage.set(token?.text)]) // without storage the session is only in memory
    this.#take(token, change)
  }

  /** Another tab may have signed in already, and its token must not be deleted. */
  #adoptOrEnd(refused: Token): void {
    const stored = tokenIn(this.#storage.get())
    if (stored === undefined || stored.text === refused.text) this.#change(undefined, 'ended')
    else this.#adopt(stored)
  }

  /** Takes over what another tab did. */
  #adopt(token: Token | undefined): void {
    if (this.#isClosed || token?.text === this.#token?.text) return
    const isSame = token?.userId === this.#token?.userId
    this.#take(token, token === undefined ? 'signedOut' : isSame ? 'renewed' : 'signedIn')
  }

  #take(token: Token | undefined, change: SessionChange): void {
    this.#token = token
    this.#session = token && sessionOf(token)
    this.#schedule()
    notify(this.#listeners, this.#session, change)
  }

  #schedule(): void {
    this.#cancelTimer()
    if (this.#token === undefined || this.#isClosed) return
    const due = Math.max(this.#token.renewAt - this.#clock.now(), 0)
    // A timer can run for at most 24 days.
    const run = () => (due > longestTimerMs ? this.#schedule() : this.#renew())
    this.#cancelTimer = this.#clock.after(Math.min(due, longestTimerMs), run, true)
  }
}

const retryMs = 10_000
const longestTimerMs = 2_000_000_000

function sessionOf({ userId, role, expiresAt }: Token): Session {
  return { userId, role, expiresAt }
}

function tokenOf({ token }: { readonly token: string }, arrivedAt: number): Token {
  const found = tokenIn(token, arrivedAt)
  if (found === undefined) throw new DuetError('server', 'The service gave no valid token.')
  return found
}

function sessionEnded(): DuetError {
  return new DuetError('unauthenticated', 'The session has ended. Sign in again.')
}

/**
 * The content of a token. The service verifies tokens, not the client. The times are relative to the arrival of the
 * token, so they do not depend on the clock of this machine.
 */
function tokenIn(text: string | null | undefined, arrivedAt?: number): Token | undefined {
  try {
    const [, payload = ''] = (text ?? '').split('.')
    const { sub, role, iat, exp } = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/')))
    const lifeMs = (exp - iat) * 1000
    if (!text || !(lifeMs > 0)) return undefined
    // The times in a token are whole seconds, so it may be a second older than it says.
    const leftMs = Math.max(lifeMs - 1000, lifeMs / 4)
    const begin = arrivedAt ?? iat * 1000
    return { text, userId: Number(sub), role, expiresAt: begin + leftMs, renewAt: begin + (leftMs * 2) / 3 }
  } catch {
    return undefined
  }
}
