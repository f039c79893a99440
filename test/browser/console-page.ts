import assert from 'node:assert/strict'
import { after } from 'node:test'
import type { BrowserContextOptions, Page, Route } from 'playwright-core'
import { startTestApp } from '../support/app.ts'
import { type OpenPage, openPage } from '../support/browser.ts'
import { read } from '../support/graphql.ts'
import type { Served } from '../support/http.ts'
import { logIn } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { leaveBrowser, sharedBrowser } from '../support/shared-browser.ts'

export const password = 'demo-password'
export const ada = 'ada@example.com'
export const grace = 'grace@example.com'

/** The messages that a browser itself prints for failed requests. */
const ofTheBrowser = /^Failed to load resource|^WebSocket connection to .* failed|^WebSocket is already in CLOSING/

/** With any option, a page has its own browser context. */
export const ownContext = { offline: false }

export interface ConsoleOptions extends BrowserContextOptions {
  readonly tab?: string
  readonly as?: string
  /** Runs before the scripts of the page. */
  readonly script?: string
  /** Whether the service refuses requests of the page, of which the browser itself prints messages. */
  readonly refusals?: boolean
}

/** A script that begins a visit with this session, or without one, unless the tab has begun already. */
function begin(token = ''): string {
  return `if (!sessionStorage.getItem('begun')) {
  sessionStorage.setItem('begun', 'yes')
  localStorage.clear()
  if ('${token}') localStorage.setItem('duet-token', '${token}')
}`
}

/** The console in a browser, and the actions that the tests need. Leaving it fails if the page had an error. */
export class ConsolePage implements AsyncDisposable {
  readonly page: Page
  readonly #opened: OpenPage
  readonly #refusals: boolean

  /** Opens a tab of the console, as a signed-in user or without a user. */
  static async open(
    url: string,
    { tab = 'feed', as, script = '', refusals = false, ...options }: ConsoleOptions = {},
  ): Promise<ConsolePage> {
    const browser = await sharedBrowser()
    const token = as === undefined ? undefined : await logIn({ url }, as, password)
    const address = `${url}/console#${tab}`
    const opened = await openPage(browser, address, { ...options, script: begin(token) + script })
    const view = new ConsolePage(opened, refusals)
    if (as !== undefined) await view.account.waitFor()
    return view
  }

  private constructor(opened: OpenPage, refusals: boolean) {
    this.#opened = opened
    this.#refusals = refusals
    this.page = opened.page
  }

  get context(): OpenPage['context'] {
    return this.#opened.context
  }

  async fillIn(email: string): Promise<void> {
    await this.page.getByRole('dialog').getByLabel('E-mail').fill(email)
    await this.page.getByRole('dialog').getByLabel('Password').fill(password)
    await this.page.getByRole('dialog').getByRole('button', { name: 'Sign in' }).click()
    await this.page.getByRole('dialog').waitFor({ state: 'hidden' })
  }

  get account() {
    return this.page.getByRole('banner').getByRole('group')
  }

  async show(tab: string): Promise<void> {
    await this.page.getByRole('link', { name: tab, exact: true }).click()
    await this.page.getByRole('heading', { name: tab, level: 1 }).waitFor()
  }

  button(name: string | RegExp) {
    return this.page.getByRole('button', { name, exact: true })
  }

  post(title: string) {
    return this.page.getByRole('article', { name: title, exact: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { troubles } = this.#opened
    await this.#opened[Symbol.asyncDispose]()
    assert.deepEqual(this.#refusals ? troubles.filter(text => !ofTheBrowser.test(text)) : troubles, [])
  }
}

type Env = Readonly<Record<string, string>>

/** The app of all tests of a suite, with the demo data, and its console. */
export function startConsole(env: Env | (() => Env) = {}, parts: Parameters<typeof startTestApp>[1] = {}) {
  const usual = { DEMO_DATA: 'true', RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }
  const app = shared(() => startTestApp({ ...usual, ...(typeof env === 'function' ? env() : env) }, parts))
  after(leaveBrowser)
  return { app, open: (options: ConsoleOptions = {}) => ConsolePage.open(app.url, options) }
}

const changes = {
  write: 'mutation ($title: String!, $content: String!) { done: createPost(title: $title, content: $content) { id } }',
  edit: 'mutation ($id: ID!, $title: String, $content: String) { done: updatePost(id: $id, title: $title, content: $content) { id } }',
  remove: 'mutation ($id: ID!) { done: deletePost(id: $id) }',
  comment: 'mutation ($id: ID!, $text: String!) { done: addComment(postId: $id, text: $text) { id } }',
  editComment: 'mutation ($id: ID!, $text: String!) { done: updateComment(id: $id, text: $text) { id } }',
  removeComment: 'mutation ($id: ID!) { done: deleteComment(id: $id) }',
}

export type Change = keyof typeof changes

/** Changes posts and comments without the console. Returns the id of what it made. */
export async function change(app: Served, what: Change, variables: object, token: string): Promise<string> {
  return (await read<{ done: { id: string } }>(app, changes[what], { token, variables })).done.id
}

/** After a turn of the event loop of the page, it has used the answers that have arrived. */
export async function settle(page: Page): Promise<void> {
  await page.evaluate('new Promise(resolve => setTimeout(resolve))')
}

/** The user comes back to the window. */
export async function focus(page: Page): Promise<void> {
  await page.evaluate("dispatchEvent(new Event('focus'))")
}

/** Fails the next request with such a text, as if the connection broke. */
export async function failOne(page: Page, text: string): Promise<void> {
  let isOver = false
  await page.route('**', route => {
    if (isOver || !route.request().postData()?.includes(text)) return route.fallback()
    isOver = true
    return route.abort()
  })
}

/** Holds the answer to one request to such an address, until the test sends it. */
export async function holdAnswer(page: Page, address: RegExp) {
  const [answered, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const late = async (route: Route) => {
    const response = await route.fetch()
    answered.resolve()
    await held.promise
    await route.fulfill({ response })
  }
  await page.route(address, late, { times: 1 })
  const send = async () => {
    const arrived = page.waitForResponse(address)
    held.resolve()
    await arrived
    await settle(page)
  }
  return { answered: answered.promise, send }
}

/** Holds one request to such an address, until the returned function is called. */
export async function holdOne(page: Page, address: RegExp): Promise<() => void> {
  const held = Promise.withResolvers<void>()
  const hold = async (route: Route) => {
    await held.promise
    await route.continue()
  }
  await page.route(address, hold, { times: 1 })
  return held.resolve
}
