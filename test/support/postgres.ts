import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { isQuick } from './form.ts'
import { freePort } from './ports.ts'

/** The folder of all servers. */
export const postgresFolder = () => process.env.DUET_TEST_POSTGRES_FOLDER ?? tmpdir()

/** The data folder of a new server, kept for the whole run because `initdb` takes seconds. */
export const postgresData = 'template.postgres'

/** A throw-away PostgreSQL server on a free port of the loopback interface, from the programs installed here. */
export class PostgresServer implements AsyncDisposable {
  readonly url: string
  readonly #folder: string
  readonly #settings: readonly string[]
  #process: ChildProcess | undefined

  static async start(settings: Readonly<Record<string, string>> = {}): Promise<PostgresServer> {
    const server = new PostgresServer(await freePort(), settings)
    await server.#initialise()
    await server.resume()
    return server
  }

  /** A standby of another server, which it reaches at the given port. It can be read when this returns. */
  static async startStandby({ url }: PostgresServer, name: string, port = new URL(url).port): Promise<PostgresServer> {
    const primary_conninfo = `host=127.0.0.1 port=${port} user=duet application_name=${name}`
    const standby = new PostgresServer(await freePort(), { primary_conninfo, wal_retrieve_retry_interval: '100' })
    await standby.#run('pg_basebackup', ['-d', url, '-D', standby.#data, '--checkpoint=fast', '--no-sync', '-R'])
    await standby.resume()
    return standby
  }

  private constructor(port: number, settings: Readonly<Record<string, string>>) {
    this.#folder = mkdtempSync(join(postgresFolder(), 'duet-postgres-'))
    this.url = `postgres://duet@127.0.0.1:${port}/postgres`
    const all = { listen_addresses: '127.0.0.1', port: String(port), max_connections: '200', ...defaults, ...settings }
    this.#settings = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const user = serverUser()
    if (user !== undefined) chownSync(this.#folder, user.uid, user.gid)
  }

  async #initialise(): Promise<void> {
    const prepared = join(postgresFolder(), postgresData)
    if (!existsSync(prepared)) {
      await this.#run('initdb', ['-U', 'duet', '-A', 'trust', '-E', 'UTF8', '--no-sync', '-D', this.#data])
      execFileSync('cp', ['-a', this.#data, prepared])
    } else execFileSync('cp', ['-a', prepared, this.#data])
  }

  async #run(name: string, args: readonly string[]): Promise<void> {
    await promisify(execFile)(program(name), args, { ...serverUser(), cwd: this.#folder })
  }

  get #data(): string {
    return join(this.#folder, 'data')
  }

  /** Starts the server, again if it was killed, and waits until it answers. */
  async resume(): Promise<void> {
    const args = ['-D', this.#data, '-k', this.#folder, ...this.#settings]
    this.#process = spawn(program('postgres'), args, { ...serverUser(), stdio: 'ignore', cwd: this.#folder })
    for (let tries = 0; ; tries++) {
      const client = new pg.Client({ connectionString: this.url })
      client.on('error', () => {})
      try {
        await client.connect()
        return await client.end()
      } catch (error) {
        if (tries > 400 || this.#process.exitCode !== null) throw error
        await delay(25)
      }
    }
  }

  /** SIGQUIT ends all its processes at once, as in a crash. SIGINT cuts all connections, and it stops properly. */
  async end(signal: 'SIGQUIT' | 'SIGINT'): Promise<void> {
    await this.#stop(pid => process.kill(pid, signal))
  }

  /** Kills all server processes at once, as when the machine fails. */
  async kill(): Promise<void> {
    await this.#stop(pid => {
      for (const each of [pid, ...childrenOf(pid)]) process.kill(each, 'SIGKILL')
    })
  }

  async #stop(signal: (pid: number) => void): Promise<void> {
    const ending = this.#process
    if (ending?.pid === undefined || ending.exitCode !== null || ending.signalCode !== null) return
    const gone = once(ending, 'exit')
    signal(ending.pid)
    await gone
  }

  /** Makes a standby the primary. It accepts writes when this returns. */
  async promote(): Promise<void> {
    await this.#run('pg_ctl', ['promote', '-D', this.#data])
  }

  /** A killed server leaves its lock file behind, which names the shared memory that it has left behind, too. */
  #removeSharedMemory(): void {
    const file = join(this.#data, 'postmaster.pid')
    if (!existsSync(file)) return
    const [, id] = /^\s*\d+\s+(\d+)\s*$/.exec(readFileSync(file, 'utf8').split('\n')[6] ?? '') ?? []
    if (id !== undefined) spawnSync('ipcrm', ['-m', id])
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.signal('SIGCONT')
    await this.end('SIGQUIT')
    this.#removeSharedMemory()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

// These settings are fast but not safe against power loss, which no test simulates. A killed server loses nothing.
const defaults = {
  fsync: 'off',
  full_page_writes: 'off',
  shared_buffers: '32MB',
  max_wal_size: '128MB', // the data folder is in memory
  dynamic_shared_memory_type: 'mmap', // in the data folder, which the test removes
}

/** The reason to skip tests on PostgreSQL, if there is one. On a build machine that is an error. */
export function postgresMissing(): string | undefined {
  if (isQuick) return 'a quick run is one on SQLite'
  if (programFolder() !== undefined) return undefined
  if (process.env.CI === 'true') throw new Error("PostgreSQL's programs must be installed where CI=true")
  return "PostgreSQL's programs (initdb, postgres) are not installed"
}

/** The path of one of PostgreSQL's programs. */
export const program = (name: string): string => join(programFolder() ?? '', name)

function programFolder(): string | undefined {
  const root = '/usr/lib/postgresql'
  const debian = existsSync(root) ? readdirSync(root).map(version => join(root, version, 'bin')) : []
  const folders = [...debian.sort().reverse(), ...(process.env.PATH ?? '').split(':')]
  return folders.find(folder => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')))
}

function childrenOf(pid: number): readonly number[] {
  const printed = execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
  return printed.trim().split('\n').map(Number)
}

/** The user that runs the server, because PostgreSQL refuses to run as root. */
export function serverUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}
