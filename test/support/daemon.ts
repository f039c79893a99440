import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isQuick } from './form.ts'
import { isRefused } from './http.ts'
import { freePort } from './ports.ts'
import { serverUser } from './postgres.ts'
import { waitUntil } from './wait.ts'

/** The reason to skip tests with an installed program, if there is one. On a build machine that is an error. */
export function programMissing(name: string): string | undefined {
  if (isQuick) return 'a quick run starts no other programs'
  if (pathOf(name) !== undefined) return undefined
  if (process.env.CI === 'true') throw new Error(`${name} must be installed where CI=true`)
  return `${name} is not installed`
}

/** Where an installed program is. */
export function pathOf(name: string): string | undefined {
  const folders = ['/usr/sbin', ...(process.env.PATH ?? '').split(':')]
  return folders.map(folder => join(folder, name)).find(path => existsSync(path))
}

interface DaemonOptions {
  readonly program: string
  /** Configuration files by name, for the daemon's own folder and port. */
  readonly files?: (folder: string, port: number) => Readonly<Record<string, string>>
  readonly args: (folder: string, port: number) => readonly string[]
}

/** An installed program with its own folder, on a free port of the loopback interface. */
export class Daemon implements AsyncDisposable {
  readonly port: number
  readonly #folder: string
  readonly #options: DaemonOptions
  #process: ChildProcess | undefined

  static async start(options: DaemonOptions): Promise<Daemon> {
    const daemon = new Daemon(options, await freePort())
    await daemon.resume()
    return daemon
  }

  protected constructor(options: DaemonOptions, port: number) {
    this.#options = options
    this.port = port
    this.#folder = mkdtempSync(join(tmpdir(), `duet-${options.program}-`))
    const user = serverUser()
    for (const [name, text] of Object.entries(options.files?.(this.#folder, port) ?? {}))
      writeFileSync(join(this.#folder, name), text)
    if (user !== undefined) chownSync(this.#folder, user.uid, user.gid)
  }

  /** Starts the program, again if it was killed, and waits until it accepts connections. */
  async resume(): Promise<void> {
    if (this.#runs) return
    const { program, args } = this.#options
    const daemon = spawn(pathOf(program) ?? program, args(this.#folder, this.port), {
      ...serverUser(),
      cwd: this.#folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let printed = ''
    daemon.stderr?.setEncoding('utf8').on('data', text => (printed += text))
    this.#process = daemon
    await waitUntil(async () => {
      if (daemon.exitCode !== null) throw new Error(`${program} did not start: ${printed}`)
      return !(await isRefused(this.port))
    })
  }

  get #runs(): boolean {
    return this.#process?.exitCode === null && this.#process.signalCode === null
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal)
  }

  /** Kills the program, as in a crash. */
  async kill(): Promise<void> {
    const ending = this.#process
    if (ending === undefined || !this.#runs) return
    const gone = once(ending, 'exit')
    ending.kill('SIGKILL')
    await gone
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
