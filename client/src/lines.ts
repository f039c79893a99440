import { backoff } from './clock.ts'
import type { Internals } from './internals.ts'
import type { Pausable } from './iterator.ts'
import { listen, notify } from './notify.ts'
import { errorOf, type GraphQLError } from './refusals.ts'
import { Channel, type Message, type SocketConstructor } from './socket.ts'
import type { Watch } from './watch.ts'

/**
 * - `idle`: nothing is subscribed, so there is no socket.
 * - `connecting`: a socket is being opened.
 * - `live`: events arrive.
 * - `waiting`: the connection is lost; the next attempt is at `retryAt`, in milliseconds since 1970.
 */
export type LiveState =
  | { readonly state: 'idle' | 'connecting' | 'live' }
  | { readonly state: 'waiting'; readonly retryAt: number }

/** Keeps the subscriptions of a connection alive, over one socket at a time. */
export class Lines {
  readonly #url: string
  readonly #parts: Internals
  readonly #watches = new Set<Watch>()
  readonly #listeners = new Set<(state: LiveState) => void>()
  #state: LiveState = { state: 'idle' }
  #channel: Channel | undefined
  /** Counts the attempts to connect. Events of earlier attempts are ignored. */
  #attempt = 0
  #failures = 0
  #liveSince = Number.POSITIVE_INFINITY
  #ids = 0
  #cancelRetry = () => {}

  constructor(url: string, parts: Internals) {
    this.#url = `${url.replace(/^http/, 'ws')}/graphql`
    this.#parts = parts
    parts.closing.add(() => this.#closeAll())
    // The user of a socket is defined by its token, so another token needs another socket.
    parts.closing.add(parts.keeper.listen(() => this.#restart()))
    const retryNow = () => this.retryNow()
    const page = globalThis as object as Partial<EventTarget>
    page.addEventListener?.('online', retryNow)
    parts.closing.add(() => page.removeEventListener?.('online', retryNow))
  }

  get state(): LiveState {
    return this.#state
  }

  onState(listener: (state: LiveState) => void): () => void {
    return listen(this.#listeners, listener)
  }

  subscribe(watch: Watch): Pausable {
    if (this.#webSocket === undefined) throw new TypeError('There is no WebSocket. Pass one to connect().')
    this.#watches.add(watch)
    if (this.#channel?.isReady) this.#begin([watch])
    else if (this.#state.state === 'idle') this.#connect()
    return {
      get position() {
        return watch.position
      },
      close: () => this.#stop(watch),
      pause: () => {
        watch.isPaused = true
        this.#complete(watch)
        watch.interrupt()
      },
      resume: () => {
        watch.isPaused = false
        if (this.#channel?.isReady) this.#begin([watch])
      },
    }
  }

  get #webSocket(): SocketConstructor | undefined {
    return this.#parts.WebSocket ?? (globalThis as { WebSocket?: SocketConstructor }).WebSocket
  }

  #complete({ id }: Watch): void {
    if (id !== undefined) this.#channel?.send({ type: 'complete', id })
  }

  #stop(watch: Watch): void {
    this.#complete(watch)
    this.#forget(watch)
  }

  #forget(watch: Watch): void {
    watch.interrupt()
    this.#watches.delete(watch)
    if (this.#watches.size > 0) return
    this.#hangUp()
    this.#report({ state: 'idle' })
  }

  #closeAll(): void {
    for (const watch of [...this.#watches]) {
      this.#stop(watch)
      watch.end()
    }
  }

  #hangUp(): void {
    this.#attempt++
    this.#cancelRetry()
    this.#channel?.close()
    this.#channel = undefined
    this.#liveSince = Number.POSITIVE_INFINITY
    for (const watch of this.#watches) watch.interrupt()
  }

  #restart(): void {
    if (this.#watches.size > 0) this.#connect()
  }

  retryNow(): void {
    if (this.#state.state === 'waiting') this.#connect()
  }

  async #connect(): Promise<void> {
    this.#hangUp()
    const attempt = this.#attempt
    this.#report({ state: 'connecting' })
    const { keeper, clock } = this.#parts
    const token = await keeper.current().catch(() => undefined)
    const WebSocket = this.#webSocket
    if (attempt !== this.#attempt || WebSocket === undefined) return
    try {
      this.#channel = new Channel({
        WebSocket,
        url: this.#url,
        token,
        clock,
        onReady: position => this.#begin([...this.#watches].filter(isActive), position),
        onMessage: message => this.#hear(message),
        onLost: code => this.#lost(code, token),
      })
    } catch {
      this.#lost(1006, token)
    }
  }

  /** `now`: the end of the event log. Known only when the socket has just been accepted. */
  #begin(watches: readonly Watch[], now?: string): void {
    const channel = this.#channel
    if (channel === undefined) return
    const begun = watches.map(watch => {
      const id = String(++this.#ids)
      channel.send(watch.begin(id, now))
      return { watch, id }
    })
    channel.ping(() => {
      if (this.#state.state !== 'live') this.#liveSince = this.#parts.clock.now()
      this.#report({ state: 'live' })
      for (const { watch, id } of begun) watch.confirm(id)
    })
  }

  #hear({ type, id, payload }: Message): void {
    const watch = [...this.#watches].find(each => each.id === id)
    if (watch === undefined || id === undefined) return
    if (type === 'next') watch.hear(payload as Parameters<Watch['hear']>[0])
    else if (type === 'error') this.#refused(watch, payload as readonly GraphQLError[])
    else if (type === 'complete') {
      this.#forget(watch)
      watch.end()
    }
  }

  #refused(watch: Watch, errors: readonly GraphQLError[]): void {
    const error = errorOf(errors, 'The subscription was refused.', { body: errors })
    watch.interrupt()
    if (error.code === 'POSITION_UNKNOWN' && watch.position !== undefined) {
      watch.forgetPosition()
      this.#begin([watch])
    } else if (error.kind === 'rateLimited' || error.kind === 'server') {
      watch.cancelRetry = this.#parts.clock.after(1000 + backoff(++watch.failures), () => this.#begin([watch]))
    } else {
      this.#forget(watch)
      watch.fail(error)
    }
  }

  async #lost(code: number, token: string | undefined): Promise<void> {
    const { clock, keeper } = this.#parts
    const wasStable = clock.now() - this.#liveSince > stableMs
    this.#failures = wasStable ? 1 : this.#failures + 1
    this.#hangUp()
    if (code === databaseLostEvents) for (const watch of this.#watches) watch.forgetPosition()
    const pause = backoff(this.#failures)
    this.#cancelRetry = clock.after(pause, () => this.#connect())
    this.#report({ state: 'waiting', retryAt: clock.now() + pause })
    // If the token was renewed or the session has ended, `#restart` follows at once.
    if (code === tokenRefused && token !== undefined) await keeper.afterRefusal(token)
  }

  #report(state: LiveState): void {
    if (state.state === this.#state.state) return
    this.#state = state
    notify(this.#listeners, state)
  }
}

function isActive({ isPaused }: Watch): boolean {
  return !isPaused
}

const stableMs = 10_000
const databaseLostEvents = 1012
const tokenRefused = 4403
