import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mock } from 'node:test'
import {
  type Clock,
  type ConnectOptions,
  connect,
  type DuetError,
  type RequestEntry,
  type TokenStorage,
  type Watcher,
} from '../../client/src/index.ts'
import { TestClock } from '../support/clock.ts'

export type TestClient = ReturnType<typeof connectTo>

/** A connection, and the requests that it has sent, also as lines such as `GET /users 200`. Disposing it closes it. */
export function connectTo({ url }: { readonly url: string }, options: Partial<ConnectOptions> = {}) {
  const requests: RequestEntry[] = []
  const duet = connect({ url, onRequest: entry => requests.push(entry), ...options })
  const lines = () => requests.map(({ method, path, status }) => `${method} ${path} ${status}`)
  return { duet, requests, lines, [Symbol.dispose]: () => duet.close() }
}

/** A token that the client uses for an hour, unless told otherwise. Only the service verifies tokens. */
export function tokenFor(userId: number, issuedAt = 0, seconds = 3600, role = 'member'): string {
  const exp = issuedAt + seconds + 1 // the client takes a second off
  const content = JSON.stringify({ sub: String(userId), role, iat: issuedAt, exp })
  return `x.${Buffer.from(content).toString('base64url')}.x`
}

/** A storage of the token that another tab has, too. Each of its functions can be replaced. */
export class TabStorage implements TokenStorage {
  stored: string | undefined
  changed = () => {}
  get = () => this.stored
  set = (token?: string) => void Object.assign(this, { stored: token })
  watch = (changed: () => void) => void Object.assign(this, { changed })

  constructor(stored?: string) {
    this.stored = stored
  }

  /** The other tab signs in, renews the token, or signs out. */
  tell(token: string | undefined): void {
    this.stored = token
    this.changed()
  }
}

/** A clock for the client that stands still until the test moves it. Timers that are due run then. */
export class ManualClock extends TestClock implements Clock {
  #timers: { readonly at: number; readonly run: () => void }[] = []

  after(milliseconds: number, run: () => void): () => void {
    const timer = { at: this.now() + milliseconds, run }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter(each => each !== timer)
    }
  }

  /** Milliseconds until each timer is due. */
  get due(): readonly number[] {
    return this.#timers.map(({ at }) => at - this.now())
  }

  override pass(milliseconds: number): void {
    this.sleep(milliseconds)
    const due = this.#timers.filter(({ at }) => at <= this.now())
    this.#timers = this.#timers.filter(timer => !due.includes(timer))
    for (const { run } of due) run()
  }

  /** Time passes but no timers run, as on a laptop in sleep mode. */
  sleep(milliseconds: number): void {
    super.pass(milliseconds)
  }
}

/** A clock for the client on which pauses take no time. It records their lengths. */
export class InstantClock implements Clock {
  readonly pauses: number[] = []
  now = Date.now

  after(milliseconds: number, run: () => void, background = false): () => void {
    if (background || milliseconds >= requestTimeoutMs) return () => {}
    this.pauses.push(milliseconds)
    const soon = setImmediate(run)
    return () => clearImmediate(soon)
  }
}

const requestTimeoutMs = 30_000

export const noNetwork = () => Promise.reject(new TypeError('no network'))

/** A `fetch` that never answers. */
export const neverAnswers: typeof fetch = async (_input, init) => {
  await once(init?.signal ?? assert.fail(), 'abort')
  throw init?.signal?.reason
}

/** A `fetch` that passes each request to the test first. The test may answer it, or throw to simulate a lost request. */
export function interceptedFetch(
  intercept: (request: { readonly method: string; readonly path: string }) => Response | Promise<Response> | undefined,
): typeof fetch {
  return async (input, init) => {
    const { pathname, search } = new URL(String(input))
    return (await intercept({ method: init?.method ?? 'GET', path: pathname + search })) ?? fetch(input, init)
  }
}

/** Collects the errors that are thrown in microtasks while `work` runs. They would end the process otherwise. */
export async function uncaughtDuring(work: () => Promise<void>): Promise<readonly unknown[]> {
  const uncaught: unknown[] = []
  const original = queueMicrotask
  const caught = (run: () => void) => {
    try {
      run()
    } catch (error) {
      uncaught.push(error)
    }
  }
  const replaced = mock.method(globalThis, 'queueMicrotask', (run: () => void) => original(() => caught(run)))
  try {
    await work()
  } finally {
    replaced.mock.restore()
  }
  return uncaught
}

export const postAdded = 'subscription { postAdded { title } }'

export interface PostAdded {
  readonly postAdded: { readonly title: string }
}

/** Records the callbacks of a subscription, in order. */
export function recorder() {
  const received: string[] = []
  const errors: DuetError[] = []
  const watcher: Watcher<PostAdded> = {
    onData: data => received.push(data.postAdded.title),
    onReadAnew: why => received.push(why),
    onEnd: () => received.push('end'),
    onError: error => errors.push(error),
  }
  return { received, errors, watcher, posts: () => received.filter(each => each.startsWith('post')) }
}
