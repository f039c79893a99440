import { Redis } from 'ioredis'
import { Daemon, programMissing } from './daemon.ts'
import { freePort } from './ports.ts'

/** A temporary Redis server on a free port of the loopback interface, without persistence. */
export class RedisServer extends Daemon {
  static override async start(): Promise<RedisServer> {
    const settings = { bind: '127.0.0.1', save: '', appendonly: 'no', databases: mostDatabases }
    const args = (_folder: string, port: number) =>
      Object.entries({ port, ...settings }).flatMap(([name, value]) => [`--${name}`, String(value)])
    const server = new RedisServer({ program: 'redis-server', args }, await freePort())
    await server.resume()
    return server
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
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

/** The reason to skip tests with Redis, if there is one. */
export const redisMissing = (): string | undefined => programMissing('redis-server')
