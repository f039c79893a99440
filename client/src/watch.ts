import type { DuetError } from './errors.ts'
import { notify } from './notify.ts'

export interface Watcher<Data> {
  /** Gets each event once and in order, also across lost connections and restarts. */
  readonly onData: (data: Data) => void
  /**
   * Called when the application should read the current state. `start`: events arrive from now on. `gap`: events may be
   * missing, because the client was offline for longer than the service keeps events, or because a subscription that
   * joined an open connection lost it before its first event. Later events still arrive.
   */
  readonly onReadAnew?: (why: 'start' | 'gap') => void
  /** The subscription has ended with an error. A lost connection is not an error: the client reconnects. */
  readonly onError?: (error: DuetError) => void
  /** The subscription has ended: its post was deleted, or the connection was closed by `duet.close()`. */
  readonly onEnd?: () => void
  /** The position to start after, from an earlier subscription. Default: now. */
  readonly after?: string | undefined
}

export interface Subscription {
  /** The position of the last event. Before the first one: where the subscription began, if that is known. */
  readonly position: string | undefined
  close(): void
}

/** One subscription of the application. It continues over several sockets. */
export class Watch {
  readonly #request: object
  readonly #watcher: Watcher<never>
  /** The id on the current socket. Each attempt has a new one, so that late messages of earlier attempts are ignored. */
  id: string | undefined
  position: string | undefined
  failures = 0
  /** Whether the application still has unused events, so that no more are requested. */
  isPaused = false
  cancelRetry = () => {}
  #due: 'start' | 'gap' | undefined

  constructor(query: string, variables: unknown, watcher: Watcher<never>) {
    this.#request = { query, variables }
    this.#watcher = watcher
    this.position = watcher.after
    if (watcher.after === undefined) this.#due = 'start'
  }

  /** Without a position of its own it begins at `now`, and not a little later: so it can resume before its first event. */
  begin(id: string, now?: string): object {
    this.position ??= now
    this.id = id
    const extensions = this.position === undefined ? { positions: true } : { after: this.position }
    return { type: 'subscribe', id, payload: { ...this.#request, extensions } }
  }

  /** The service has received the subscription. */
  confirm(id: string): void {
    if (this.id !== id) return
    const due = this.#due
    this.#due = undefined
    if (due !== undefined) notify([this.#watcher.onReadAnew], due)
  }

  /** Stops the events until it subscribes again, after its position if it has one. */
  interrupt(): void {
    this.cancelRetry()
    this.id = undefined
    if (this.position === undefined) this.#due ??= 'gap'
  }

  /** The service does not know the position, so it is not used again. */
  forgetPosition(): void {
    this.position = undefined
    this.#due ??= 'gap'
  }

  hear({ data, extensions }: { data: never; extensions?: { position?: string } }): void {
    this.failures = 0
    this.position = extensions?.position ?? this.position
    notify([this.#watcher.onData], data)
  }

  fail(error: DuetError): void {
    notify([this.#watcher.onError], error)
  }

  end(): void {
    notify([this.#watcher.onEnd])
  }
}
