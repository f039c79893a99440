import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { isQuick } from './form.ts'
import { freePort } from './ports.ts'

/** A temporary Redis server on a free port of the loopback interface, without persistence. */
export class RedisServer implements AsyncDisposable {
  readonly port: number
  #process: ChildProcess | undefined

  static async start(): Promise<RedisServer> {
    const server = new RedisServer(await freePort())
    await server.resume()
    return server
  }

  private constructor(port: number) {
    this.port = port
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /** Starts the server unless it runs, and waits until it answers. */
  async resume(): Promise<void> {
    if (this.#runs) return
    const settings = { port: this.port, bind: '127.0.0.1', save: '', appendonly: 'no', databases: mostDatabases }
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
    this.#process = spawn(program() ?? '', args, { stdio: 'ignore', cwd: tmpdir() })
    for (let tries = 0; ; tries++) {
      try {
        await this.ask('ping')
        return
      } catch (error) {
        if (tries > 400 || !this.#runs) throw error
        await delay(25)
      }
    }
  }

  get #runs(): boolean {
    return this.#process?.exitCode === null && this.#process.signalCode === null
  }

  /** The answer to one command, on a separate connection. */
  ask(command: string, ...args: (string | number)[]): Promise<unknown> {
    return askRedis(this.url, command, ...args)
  }

  /** Kills the server, as in a crash. */
  async kill(): Promise<void> {
    const ending = this.#process
    if (ending === undefined || !this.#runs) return
    const gone = once(ending, 'exit')
    ending.kill('SIGKILL')
    await gone
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }
}

/** The answer to one command, on a separate connection. */
export async function askRedis(url: string, command: string, ...args: (string | number)[]): Promise<unknown> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: null, enableReadyCheck: false })
  client.on('error', () => {}) // the promise reports the error
  try {
    await client.connect()
    return await client.call(command, ...args)
  } finally {
    client.disconnect()
  }
}

/** The address of an empty database on the server that the whole run shares. */
export async function newRedisDatabase(): Promise<string> {
  const server = process.env.DUET_TEST_REDIS
  if (server === undefined) throw new Error('Run tests by `npm run test:only -- <file>`')
  // Database 0 counts the databases that were given to test processes.
  next ??= Number(await askRedis(server, 'incrby', 'databases', databasesAtOnce)) - databasesAtOnce
  const database = ++next
  if (database % databasesAtOnce === 0) next = undefined
  return `${server}/${database}`
}

let next: number | undefined
const databasesAtOnce = 50
const mostDatabases = 10_000

/** The reason to skip tests with Redis, if there is one. On a build machine that is an error. */
export function redisMissing(): string | undefined {
  if (isQuick) return 'a quick run is one without other servers'
  if (program() !== undefined) return undefined
  if (process.env.CI === 'true') throw new Error('redis-server must be installed where CI=true')
  return 'redis-server is not installed'
}

function program(): string | undefined {
  const folders = (process.env.PATH ?? '').split(':')
  return folders.map(folder => join(folder, 'redis-server')).find(path => existsSync(path))
}
