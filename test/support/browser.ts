import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { temporaryFolder } from './folder.ts'
import { waitUntil, within } from './wait.ts'

const programs = (process.env.PATH ?? '').split(':').map(folder => join(folder, 'chromium'))

/** Why tests in a browser are skipped, if they are. */
export const browserMissing = !programs.some(existsSync) && 'chromium is not installed'

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: unknown
}

/** A page in Chromium, by the DevTools protocol. */
export class BrowserPage implements AsyncDisposable {
  /** What happened in the page. */
  readonly events: Message[] = []
  readonly #program: ChildProcess
  readonly #folder: Disposable
  readonly #socket: WebSocket
  readonly #answers = new Map<number, (message: Message) => void>()
  #session: unknown
  #calls = 0

  static async open(url: string, size: { readonly width: number; readonly height: number }): Promise<BrowserPage> {
    const folder = temporaryFolder()
    const switches = ['--headless=new', '--no-sandbox', '--disable-gpu', '--remote-debugging-port=0']
    const args = [...switches, `--user-data-dir=${folder.path}`, 'about:blank']
    const program = spawn('chromium', args, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, TMPDIR: folder.path },
    })
    let printed = ''
    program.stderr.setEncoding('utf8').on('data', text => {
      printed += text
    })
    await waitUntil(() => /listening on ws:\S+\n/.test(printed))
    const socket = new WebSocket(/listening on (ws:\S+)\n/.exec(printed)?.[1] ?? assert.fail(printed))
    await within(once(socket, 'open'), 'Chromium')
    const page = new BrowserPage(program, folder, socket)
    const { targetInfos } = await page.call('Target.getTargets')
    const [target] = (targetInfos as { type: string; targetId: string }[]).filter(({ type }) => type === 'page')
    const { sessionId } = await page.call('Target.attachToTarget', { targetId: target?.targetId, flatten: true })
    page.#session = sessionId
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await page.call(`${domain}.enable`)
    await page.call('Emulation.setDeviceMetricsOverride', { ...size, deviceScaleFactor: 1, mobile: size.width < 700 })
    await page.call('Page.navigate', { url })
    return page
  }

  private constructor(program: ChildProcess, folder: Disposable, socket: WebSocket) {
    this.#program = program
    this.#folder = folder
    this.#socket = socket
    socket.on('message', data => {
      const message: Message = JSON.parse(String(data))
      if (message.id === undefined) this.events.push(message)
      else this.#answers.get(message.id)?.(message)
    })
  }

  async call(method: string, params: object = {}): Promise<Readonly<Record<string, unknown>>> {
    const id = ++this.#calls
    const { promise, resolve } = Promise.withResolvers<Message>()
    this.#answers.set(id, resolve)
    this.#socket.send(JSON.stringify({ id, method, params, sessionId: this.#session }))
    const { result, error } = await within(promise, method)
    return result ?? assert.fail(`${method}: ${JSON.stringify(error)}`)
  }

  /** The value of an expression in the page. */
  async value<Value = unknown>(expression: string): Promise<Value> {
    const { result } = await this.call('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    return (result as { value: Value }).value
  }

  async until(expression: string): Promise<void> {
    await waitUntil(async () => (await this.value<boolean>(`!!(${expression})`)) === true)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#program, 'exit')
    this.#socket.send(JSON.stringify({ id: ++this.#calls, method: 'Browser.close' }))
    await within(exited, 'the end of Chromium')
    this.#folder[Symbol.dispose]()
  }
}
