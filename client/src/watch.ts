import type { DuetError } from './errors.ts'
import { notify } from './notify.ts'

export interface Watcher<Data> {
  /** Each event once and in order, also across lost connections and restarts. */
  readonly onData: (data: Data) => void
  /**
   * Time to read the current state. `start`: events arrive from now on. `gap`: events may be missing, because the client
   * was away for longer than the service keeps events, or lost its connection before the first one; further ones follow.
   */
  readonly onReadAnew?: (why: 'start' | 'gap') => void
  /** The subscription has ended with an error. Lost connections are no errors: they are renewed. */
  readonly onError?: (error: DuetError) => void
  /** The subscription has ended: its post was deleted, or the connection was closed by `duet.close()`. */
  readonly onEnd?: () => void
  /** Where to begin: the position of an earlier subscription. Default: now. */
  readonly after?: string | undefined
}

export interface Subscription {
  /** Of the last event. */
  readonly position: string | undefined
  close(): void
}

/** One subscription of the application. It outlives the sockets over which its events come. */
export class Watch {
  readonly #request: object
  readonly #watcher: Watcher<never>
  /** The id on the present socket. Each attempt has another one, so that late messages of earlier ones are not confused. */
  id: string | undefined
  position: string | undefined
  failures = 0
  /** Whether the application has not used the events yet that it has got. */
  isPaused = false
  cancelRetry = () => {}
  #isLive = false
  #due: 'start' | 'gap' | undefined

  constructor(query: string, variables: unknown, watcher: Watcher<never>) {
    this.#request = { query, variables }
    this.#watcher = watcher
    this.position = watcher.after
    if (watcher.after === undefined) this.#due = 'start'
  }

  begin(id: string): object {
    this.cancelRetry()
    this.id = id
    const extensions = this.position === undefined ? { positions: true } : { after: this.position }
    return { type: 'subscribe', id, payload: { ...this.#request, extensions } }
  }

  /** The subscription reached the service. */
  confirm(id: string): void {
    if (this.id !== id) return
    this.#isLive = true
    const due = this.#due
    this.#due = undefined
    if (due !== undefined) notify([this.#watcher.onReadAnew], due)
  }

  /** No events come until it begins again, which is after the position, if there is one. */
  interrupt(): void {
    this.cancelRetry()
    this.id = undefined
    if (this.#isLive && this.position === undefined) this.#due ??= 'gap'
    this.#isLive = false
  }

  /** The service does not know the position. */
  forgetPosition(): void {
    this.position = undefined
    this.#due = 'gap'
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
