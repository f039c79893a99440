import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './folder.ts'
import { testThreads } from './form.ts'
import { generous, waitUntil, within } from './wait.ts'

const ownRoot = join(import.meta.dirname, '..', '..')

export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

interface Settings {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** The folder of the program, if it is a copy. */
  readonly root?: string
  /** The content of stdin. */
  readonly input?: string
}

/** A process of the real program, with its output so far. */
export class DuetProcess implements AsyncDisposable {
  readonly child: ChildProcess
  stdout = ''
  stderr = ''
  readonly #exit: Promise<number | null>
  /** Removed by the test, because a killed process cannot remove its temporary files. */
  readonly #temporary = temporaryFolder()

  /**
   * Starts `npm start`, or `bin/duet.mjs` with arguments. From the test's own environment it gets only the paths of
   * programs and caches.
   */
  constructor(args: readonly string[] | 'npm start', { env = {}, root = ownRoot, cwd = root, input }: Settings = {}) {
    const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
    const [command, commandArgs] =
      args === 'npm start' ? ['npm', ['start']] : [process.execPath, [join(root, 'bin', 'duet.mjs'), ...args]]
    this.child = spawn(command, commandArgs, {
      cwd,
      env: { PATH, HOME, NODE_COMPILE_CACHE, TMPDIR: this.#temporary.path, THREADS: testThreads, ...env },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      detached: true, // a separate process group, so that all of its processes can be ended
    })
    this.child.stdin?.end(input)
    for (const name of ['stdout', 'stderr'] as const) {
      this.child[name]?.setEncoding('utf8').on('data', text => (this[name] += text))
    }
    this.#exit = once(this.child, 'close').then(([code]) => code)
  }

  /** Waits for the address that a server prints once it listens. */
  async address(): Promise<{ url: string; port: number }> {
    const printed = () => /(http:\/\/\S+:(\d+))\/health/.exec(this.stdout)
    await waitUntil(() => printed() !== null || this.child.exitCode !== null)
    const [, url = '', port] = printed() ?? []
    if (url === '') throw new Error(`No server started: ${this.stdout}${this.stderr}`)
    return { url, port: Number(port) }
  }

  /** The CPU time in milliseconds. Unlike elapsed time, it does not depend on other work of the machine. */
  get cpuMs(): number {
    const [, afterName = ''] = readFileSync(`/proc/${this.child.pid}/stat`, 'utf8').split(') ')
    const [user, system] = afterName.split(' ').slice(11, 13).map(Number)
    return ((user ?? 0) + (system ?? 0)) * 10
  }

  /** Waits until the process has ended by itself. */
  async outcome(): Promise<Outcome> {
    const code = await within(this.#exit, () => `the end of a process that printed ${this.stdout}${this.stderr}`)
    return { code, stdout: this.stdout, stderr: this.stderr }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { pid } = this.child
    try {
      if (pid !== undefined) process.kill(-pid, 'SIGKILL')
    } catch {} // all have ended already
    await this.#exit
    this.#temporary[Symbol.dispose]()
  }
}

/** Runs a command of the program to its end. */
export async function runDuet(args: readonly string[], settings?: Settings): Promise<Outcome> {
  await using duet = new DuetProcess(args, settings)
  return await duet.outcome()
}

/** The one line on stderr of a command that has failed and printed nothing else. */
export function refusalOf({ code, stdout, stderr }: Outcome): string {
  assert.deepEqual([code, stdout], [1, ''], stderr)
  assert.match(stderr, /^duet: [^\n]+\n$/)
  return stderr
}

/** Starts a server, by default on a free port and a temporary database without demo data. */
export function serveDuet(
  env: Readonly<Record<string, string>> = {},
  place: Pick<Settings, 'cwd' | 'root'> = {},
): DuetProcess {
  const all = { ...generous, PORT: '0', DATABASE_URL: 'sqlite::memory:', DRAIN_MS: '0', DEMO_DATA: 'false', ...env }
  return new DuetProcess(['serve'], { env: all, ...place })
}
