import { registerHooks } from 'node:module'
import { mock, type TestContext } from 'node:test'

// A page of the console without a browser: its state, with a service of the test behind `fetch` and `WebSocket`.

/** Each page loads its own copy of the modules of the console, as in a browser. */
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context)
    const page = /\?page=\d+$/.exec(context.parentURL ?? '')?.[0] ?? ''
    return page !== '' && /\/console\/src\//.test(found.url) ? { ...found, url: found.url + page } : found
  },
})

/** A storage of the browser. A full one takes nothing more. */
export class FakeStorage extends Map<string, string> {
  isFull = false

  getItem(key: string): string | null {
    return this.get(key) ?? null
  }

  setItem(key: string, value: string): void {
    if (this.isFull) throw new Error('The storage is full')
    this.set(key, value)
  }

  removeItem(key: string): void {
    this.delete(key)
  }
}

export class FakeSocket {
  readonly subscriptions = new Map<string, { query: string; variables?: { postId?: string } }>()
  onopen: (() => void) | null = null
  onmessage: ((event: { data: string }) => void) | null = null
  onclose: ((event: { code: number }) => void) | null = null

  constructor(isAccepted: boolean) {
    queueMicrotask(() => (isAccepted ? this.onopen?.() : this.onclose?.({ code: 1006 })))
  }

  send(text: string): void {
    const { type, id, payload } = JSON.parse(text)
    if (type === 'subscribe') this.subscriptions.set(id, payload)
    if (type === 'complete') this.subscriptions.delete(id)
    if (type === 'connection_init') this.#tell({ type: 'connection_ack', payload: { position: '1' } })
    if (type === 'ping') this.#tell({ type: 'pong', payload })
  }

  close(): void {}

  #tell(message: object): void {
    queueMicrotask(() => this.onmessage?.({ data: JSON.stringify(message) }))
  }

  /** An event for whoever has subscribed to it. */
  event(name: string, data: unknown, postId?: string): void {
    for (const [id, { query, variables }] of this.subscriptions) {
      if (!query.includes(`${name}`) || variables?.postId !== postId) continue
      this.onmessage?.({ data: JSON.stringify({ type: 'next', id, payload: { data: { [name]: data } } }) })
    }
  }
}

/** The address and its history. */
class FakeHistory {
  readonly steps: { href: string; state: unknown }[]
  #at = 0
  readonly #changed: (oldURL: string) => void

  constructor(href: string, changed: (oldURL: string) => void) {
    this.steps = [{ href, state: null }]
    this.#changed = changed
  }

  get #step() {
    return this.steps[this.#at] ?? { href: '', state: null }
  }

  get href(): string {
    return this.#step.href
  }

  get hash(): string {
    return new URL(this.href).hash
  }

  get state(): unknown {
    return this.#step.state
  }

  assign(to: string): void {
    this.#move(() => this.steps.splice(++this.#at, Number.POSITIVE_INFINITY, { href: to, state: null }), to)
  }

  replace(to: string): void {
    this.#move(() => this.steps.splice(this.#at, 1, { href: to, state: null }), to)
  }

  back(): void {
    this.#move(() => this.#at--)
  }

  replaceState(state: unknown, _title: string, to = this.href): void {
    this.steps[this.#at] = { href: new URL(to, this.href).href, state }
  }

  #move(change: () => void, to = ''): void {
    const before = this.href
    const { href } = new URL(to, before)
    change()
    if (to !== '') this.#step.href = href
    if (this.href !== before) queueMicrotask(() => this.#changed(before))
  }
}

/** What the service answers to an operation by its name, or to `GET /users/me`: a value, or a whole answer. */
export type Answers = Record<string, (sent: never, headers: Headers, url: URL) => unknown>

export interface PageOptions {
  readonly local?: FakeStorage
  readonly session?: FakeStorage
  readonly hash?: string
  readonly settings?: object
}

/** After some turns of the event loop, all that needs no new answer is done. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise(resolve => setImmediate(resolve))
}

/** Timers, and what else is named, stand still until the end of the test, unless it lets time pass. */
export function stopTime(t: TestContext, ...more: readonly 'Date'[]): void {
  mock.timers.enable({ apis: ['setTimeout', ...more], now: 1_000_000 })
  t.after(() => mock.timers.reset())
}

let count = 0

/** A page with its storages, its service and its address. Disposing it closes it. */
export class StatePage implements Disposable {
  readonly local: FakeStorage
  readonly session: FakeStorage
  readonly history: FakeHistory
  readonly document: { hidden: boolean }
  /** Without an answer, the service cannot be reached. */
  readonly answers: Answers = {}
  /** The requests so far, such as `Posts` or `GET /users/me`. */
  readonly asked: string[] = []
  readonly sockets: FakeSocket[] = []
  acceptsSockets = true
  /** What the page does from time to time. */
  readonly intervals: (() => void)[] = []
  readonly #window = new EventTarget()
  readonly #number = ++count
  readonly #replaced = new Map<string, PropertyDescriptor | undefined>()
  /** They end with the page: what they do would disturb the tests that follow. */
  readonly #timers = new Set<ReturnType<typeof setTimeout>>()
  #close = () => {}

  constructor({ local = new FakeStorage(), session = new FakeStorage(), hash = '', settings = {} }: PageOptions = {}) {
    this.local = local
    this.session = session
    this.history = new FakeHistory(`http://127.0.0.1:4000/console${hash}`, oldURL =>
      this.tell('hashchange', { oldURL }),
    )
    const app = { dataset: { settings: JSON.stringify(settings) } }
    const querySelector = (name: string) => (name === '#app' ? app : null)
    this.document = { hidden: false, querySelector, createElement: () => ({ dataset: {} }) } as { hidden: boolean }
    const { sockets } = this
    const { setTimeout: later } = globalThis
    const isAccepted = () => this.acceptsSockets
    const globals = {
      ...{ localStorage: local, sessionStorage: session, location: this.history, history: this.history },
      ...{ document: this.document, navigator: { onLine: true }, scrollY: 120 },
      setInterval: (run: () => void) => this.intervals.push(run),
      setTimeout: (run: () => void, ms: number) => {
        const timer = later(run, ms)
        this.#timers.add(timer)
        return timer
      },
      addEventListener: this.#window.addEventListener.bind(this.#window),
      removeEventListener: this.#window.removeEventListener.bind(this.#window),
      fetch: this.#fetch.bind(this),
      WebSocket: class extends FakeSocket {
        constructor() {
          super(isAccepted())
          sockets.push(this)
        }
      },
    }
    for (const [name, value] of Object.entries(globals)) {
      this.#replaced.set(name, Object.getOwnPropertyDescriptor(globalThis, name))
      Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })
    }
  }

  /** What the modules of `console/src/state` export. It has no types here, because they need those of a browser. */
  async load(...names: readonly string[]) {
    const url = (name: string) => `../../console/src/state/${name}.ts?page=${this.#number}`
    const modules = await Promise.all(['../client', ...names].map(name => import(url(name))))
    const state = Object.assign({}, ...modules)
    this.#close = () => state.duet.close()
    return state
  }

  /** Tells the page an event of its window. */
  tell(name: string, details: object = {}): void {
    this.#window.dispatchEvent(Object.assign(new Event(name), details))
  }

  /** Tells the page an event of its service. */
  event(...args: Parameters<FakeSocket['event']>): void {
    this.sockets.at(-1)?.event(...args)
  }

  /** Holds the answers to these operations, until the returned function sends them. */
  hold(...names: readonly string[]): (answer: unknown) => Promise<void> {
    const late = Promise.withResolvers<unknown>()
    for (const name of names) this.answers[name] = () => late.promise
    return answer => {
      late.resolve(answer)
      return settled()
    }
  }

  /** Another tab changes what is stored. */
  storeElsewhere(key: string, value: string | undefined): void {
    if (value === undefined) this.local.removeItem(key)
    else this.local.setItem(key, value)
    this.tell('storage', { storageArea: this.local, key })
  }

  async #fetch(url: URL, { method, headers, body }: { method: string; headers: Headers; body?: string }) {
    const sent = body === undefined ? undefined : JSON.parse(body)
    const operation = /(?:query|mutation) (\w+)/.exec(sent?.query ?? '')?.[1]
    const name = operation ?? `${method} ${url.pathname}`
    this.asked.push(name)
    const answer = this.answers[name]
    if (answer === undefined) throw new TypeError('The service cannot be reached')
    const value = await answer((operation === undefined ? sent : sent.variables) as never, headers, url)
    return value instanceof Response ? value : Response.json(operation === undefined ? value : { data: value })
  }

  [Symbol.dispose](): void {
    this.#close()
    for (const timer of this.#timers) clearTimeout(timer)
    for (const [name, descriptor] of this.#replaced) {
      if (descriptor === undefined) Reflect.deleteProperty(globalThis, name)
      else Object.defineProperty(globalThis, name, descriptor)
    }
  }
}
