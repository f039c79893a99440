import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { parseEnv } from 'node:util'
import type { Policy, SignUp } from './core/access.ts'

/** All settings, read once, checked and frozen. No other module reads the environment. */
export interface Config {
  readonly production: boolean
  readonly host: string
  readonly port: number
  /** How many threads of the process serve. */
  readonly threads: number
  readonly database: DatabaseConfig
  /** What instances share their limits through. */
  readonly redis: RedisConfig | undefined
  readonly redisTimeoutMs: number
  /** Maximum milliseconds for one database operation. */
  readonly databaseTimeoutMs: number
  /** Milliseconds in which a new socket must send `connection_init`. */
  readonly socketInitTimeoutMs: number
  readonly socketsPerClient: number
  /** 0: any number. */
  readonly socketMessagesPerSecond: number
  /** Maximum number of different subscriptions of one client, and of all clients together. */
  readonly subscriptionGroupsPerClient: number
  readonly subscriptionGroups: number
  readonly eventRetentionSeconds: number
  readonly bodyLimitBytes: number
  /** Maximum number of open connections of one client, without WebSockets; 0: any number. */
  readonly connectionsPerClient: number
  readonly maintenance: boolean
  readonly corsOrigins: readonly string[]
  readonly metricsToken: string | undefined
  /** Whether `/metrics` can be read without a token. */
  readonly metricsOpen: boolean
  readonly logLevel: LogLevel
  readonly drainMs: number
  readonly demoData: boolean
  readonly accessPolicy: Policy
  readonly signUp: SignUp
  /** Whether only this machine can reach the service. */
  readonly loopback: boolean
  /** A JWK Set, or the path of a file with one. Without it, a SQLite database has its own key file. */
  readonly tokenKeys: string | undefined
  readonly tokenTtlSeconds: number
  readonly sessionTtlSeconds: number
  readonly idempotencyTtlSeconds: number
  readonly linkPrefix: string
  readonly rateLimit: RateLimitConfig
  readonly loginLimitMax: number
  readonly queryMaxDepth: number
  readonly queryMaxComplexity: number
  /** Whether GraphQL clients may ask for the schema. */
  readonly introspection: boolean
  /** Whether there are pages for trying the interfaces in a browser. */
  readonly explorers: boolean
  /** The path of a manifest of the only documents that GraphQL clients may run. */
  readonly trustedDocuments: string | undefined
  readonly trustProxy: readonly string[]
}

export interface RateLimitConfig {
  /** 0: no limit. */
  readonly max: number
  readonly windowMs: number
  readonly paths: readonly string[]
}

export type DatabaseConfig =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly poolMax: number; readonly pooler: boolean }

export interface RedisConfig {
  readonly host: string
  readonly port: number
  readonly username?: string
  readonly password?: string
  readonly database: number
  readonly tls: boolean
}

export type LogLevel = (typeof logLevels)[number]

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** An invalid setting. The message is one line that names the variable. It never contains a secret. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

export type Environment = Readonly<Record<string, string | undefined>>

/** The variables of the process. A `.env` file in the current folder adds those that the process does not set. */
export function processEnvironment(): Environment {
  let file: Environment = {}
  try {
    file = parseEnv(readFileSync('.env', 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw new ConfigError('.env: cannot be read')
  }
  return { ...file, ...process.env }
}

export function readConfig(environment: Environment): Config {
  const read = (name: SettingName) => {
    const value = environment[name]?.trim()
    return value === undefined || value === '' ? settings[name].fallback : value
  }
  const production = oneOf('NODE_ENV', read('NODE_ENV'), ['development', 'production', 'test']) === 'production'
  // For `localhost`, Fastify starts a second server for the second address. That server would not have our responses to
  // malformed requests.
  const host = read('HOST') === 'localhost' ? '127.0.0.1' : read('HOST')
  const loopback = host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
  const poolMax = integer('DATABASE_POOL_MAX', read('DATABASE_POOL_MAX'), 1, 1000)
  const pooler = oneOf('DATABASE_POOLER', read('DATABASE_POOLER'), ['none', 'transaction']) === 'transaction'
  const storage = database(read('DATABASE_URL'), poolMax, pooler)
  const isLocal = loopback && !production
  return Object.freeze({
    production,
    host,
    loopback,
    port: integer('PORT', read('PORT'), 0, 65_535),
    threads: threads(read('THREADS') || String(usualThreads)),
    database: storage,
    databaseTimeoutMs: integer('DATABASE_TIMEOUT_MS', read('DATABASE_TIMEOUT_MS'), 200, 600_000),
    redis: redis(read('REDIS_URL')),
    redisTimeoutMs: integer('REDIS_TIMEOUT_MS', read('REDIS_TIMEOUT_MS'), 10, 600_000),
    socketInitTimeoutMs: integer('SOCKET_INIT_TIMEOUT_MS', read('SOCKET_INIT_TIMEOUT_MS'), 100, 600_000),
    socketsPerClient: integer('SOCKETS_PER_CLIENT', read('SOCKETS_PER_CLIENT'), 1, 1_000_000),
    socketMessagesPerSecond: integer('SOCKET_MESSAGES_PER_SECOND', read('SOCKET_MESSAGES_PER_SECOND'), 0, 1_000_000),
    subscriptionGroupsPerClient: integer(
      'SUBSCRIPTION_GROUPS_PER_CLIENT',
      read('SUBSCRIPTION_GROUPS_PER_CLIENT'),
      1,
      1_000_000,
    ),
    subscriptionGroups: integer('SUBSCRIPTION_GROUPS', read('SUBSCRIPTION_GROUPS'), 1, 1_000_000),
    eventRetentionSeconds: integer('EVENT_RETENTION_SECONDS', read('EVENT_RETENTION_SECONDS'), 60, 30 * 86_400),
    bodyLimitBytes: integer('BODY_LIMIT_BYTES', read('BODY_LIMIT_BYTES'), 1024, 64 * 1024 * 1024),
    connectionsPerClient: integer('CONNECTIONS_PER_CLIENT', read('CONNECTIONS_PER_CLIENT'), 0, 1_000_000),
    maintenance: oneOf('MAINTENANCE', read('MAINTENANCE'), ['off', 'on']) === 'on',
    corsOrigins: origins(read('CORS_ORIGINS')),
    metricsToken: token('METRICS_TOKEN', read('METRICS_TOKEN')),
    metricsOpen: isLocal,
    logLevel: oneOf('LOG_LEVEL', read('LOG_LEVEL'), logLevels),
    drainMs: integer('DRAIN_MS', read('DRAIN_MS'), 0, 8_000),
    demoData:
      oneOf('DEMO_DATA', read('DEMO_DATA') || String(isLocal && storage.kind === 'sqlite'), booleans) === 'true',
    accessPolicy: oneOf('ACCESS_POLICY', read('ACCESS_POLICY') || (isLocal ? 'open' : 'enforced'), policies),
    signUp: oneOf('SIGN_UP', read('SIGN_UP'), ['open', 'closed']),
    tokenKeys: read('TOKEN_KEYS') || undefined,
    tokenTtlSeconds: integer('TOKEN_TTL_SECONDS', read('TOKEN_TTL_SECONDS'), 1, 365 * 86_400),
    sessionTtlSeconds: integer('SESSION_TTL_SECONDS', read('SESSION_TTL_SECONDS'), 1, 3650 * 86_400),
    idempotencyTtlSeconds: integer('IDEMPOTENCY_TTL_SECONDS', read('IDEMPOTENCY_TTL_SECONDS'), 1, 365 * 86_400),
    linkPrefix: linkPrefix(read('LINK_PREFIX')),
    rateLimit: Object.freeze({
      max: integer('RATE_LIMIT_MAX', read('RATE_LIMIT_MAX'), 0, 1_000_000_000),
      windowMs: integer('RATE_LIMIT_WINDOW_MS', read('RATE_LIMIT_WINDOW_MS'), 1, 86_400_000),
      paths: paths(read('RATE_LIMIT_PATHS') || (isLocal ? '/api/,/graphql' : '/')),
    }),
    loginLimitMax: integer('LOGIN_LIMIT_MAX', read('LOGIN_LIMIT_MAX'), 0, 1_000_000),
    queryMaxDepth: integer('QUERY_MAX_DEPTH', read('QUERY_MAX_DEPTH'), 0, 20),
    queryMaxComplexity: integer('QUERY_MAX_COMPLEXITY', read('QUERY_MAX_COMPLEXITY'), 1, 1_000_000),
    introspection: oneOf('INTROSPECTION', read('INTROSPECTION') || (production ? 'off' : 'on'), switches) === 'on',
    explorers: oneOf('EXPLORERS', read('EXPLORERS') || (production ? 'off' : 'on'), switches) === 'on',
    trustedDocuments: read('TRUSTED_DOCUMENTS') || undefined,
    trustProxy: proxies(read('TRUST_PROXY')),
  })
}

/** The settings that `duet --help` lists. */
export const settings = {
  HOST: { fallback: '127.0.0.1', meaning: 'address to listen on' },
  PORT: { fallback: '4000', meaning: 'port to listen on; 0 picks a free one' },
  THREADS: {
    fallback: '',
    meaning: 'threads that serve, from 1 to 8',
    default: "the machine's cores less one, at least 1 and at most 8; 1 on systems other than Linux",
  },
  DATABASE_URL: {
    fallback: 'sqlite:data/duet.db',
    meaning: 'sqlite:<path>, sqlite::memory: (a temporary file) or postgres://…',
  },
  DATABASE_POOL_MAX: { fallback: '10', meaning: 'PostgreSQL connections per instance' },
  DATABASE_POOLER: {
    fallback: 'none',
    meaning: 'transaction: PostgreSQL is behind a pooler that lends a connection for one transaction (PgBouncer)',
  },
  DATABASE_TIMEOUT_MS: {
    fallback: '1200',
    meaning: 'milliseconds that one operation may take in the database; then the answer is 503',
  },
  REDIS_URL: {
    fallback: '',
    meaning: 'redis://… or rediss://…: where instances share rate and login limits',
    default: 'each instance has its own limits',
  },
  REDIS_TIMEOUT_MS: {
    fallback: '250',
    meaning: 'milliseconds to wait for Redis; then the instance counts by itself until Redis answers again',
  },
  SOCKET_INIT_TIMEOUT_MS: { fallback: '3000', meaning: 'milliseconds that a new socket has to send connection_init' },
  SOCKETS_PER_CLIENT: { fallback: '1000', meaning: 'open sockets of one client; then 429' },
  SOCKET_MESSAGES_PER_SECOND: {
    fallback: '50',
    meaning: 'messages a second on one socket, over ten seconds; 0: any number',
  },
  SUBSCRIPTION_GROUPS_PER_CLIENT: { fallback: '200', meaning: 'different subscriptions of one client' },
  SUBSCRIPTION_GROUPS: { fallback: '10000', meaning: 'different subscriptions of all clients of this instance' },
  EVENT_RETENTION_SECONDS: { fallback: '3600', meaning: 'seconds for which a subscription can be resumed' },
  BODY_LIMIT_BYTES: { fallback: '1048576', meaning: 'largest request body' },
  CONNECTIONS_PER_CLIENT: {
    fallback: '1000',
    meaning: 'open connections of one client, WebSockets not counted; further ones are closed; 0: any number',
  },
  MAINTENANCE: { fallback: 'off', meaning: 'on: every request except health gets 503; SIGUSR2 toggles it' },
  CORS_ORIGINS: { fallback: '*', meaning: 'origins that browsers may call from, separated by commas' },
  METRICS_TOKEN: {
    fallback: '',
    meaning: 'bearer token for /metrics; in production or beyond loopback /metrics is off without it',
  },
  DEMO_DATA: {
    fallback: '',
    meaning: 'fill an empty database with demo data',
    default: 'true for SQLite on loopback outside production, else false',
  },
  ACCESS_POLICY: {
    fallback: '',
    meaning: 'open (anyone may do almost anything) or enforced (owners and admins)',
    default: 'open on loopback outside production, else enforced',
  },
  SIGN_UP: { fallback: 'open', meaning: 'who may create users: open (as the access policy says) or closed (admins)' },
  TOKEN_KEYS: {
    fallback: '',
    meaning: 'JWK Set of Ed25519 private keys, or the path of one; the first signs, all verify',
    default: 'a key file next to the SQLite file',
  },
  TOKEN_TTL_SECONDS: { fallback: '3600', meaning: 'lifetime of a token' },
  SESSION_TTL_SECONDS: { fallback: '2592000', meaning: 'how long after a login its token can be renewed' },
  IDEMPOTENCY_TTL_SECONDS: { fallback: '86400', meaning: 'how long the keys of payments are kept' },
  LINK_PREFIX: { fallback: '', meaning: 'prefix of all addresses in Location and links' },
  RATE_LIMIT_MAX: { fallback: '100', meaning: 'requests per window and client; 0: no limit' },
  RATE_LIMIT_WINDOW_MS: { fallback: '60000', meaning: 'length of the window' },
  RATE_LIMIT_PATHS: {
    fallback: '',
    meaning: 'paths with a rate limit, separated by commas; / means all',
    default: '/api/,/graphql on loopback outside production, else /',
  },
  LOGIN_LIMIT_MAX: {
    fallback: '10',
    meaning: 'failed logins per minute, client and e-mail, ten times as many per client; 0: no limit',
  },
  QUERY_MAX_DEPTH: { fallback: '5', meaning: 'levels of nesting that a GraphQL operation may have' },
  QUERY_MAX_COMPLEXITY: { fallback: '1000', meaning: 'cost that a GraphQL operation may have' },
  INTROSPECTION: {
    fallback: '',
    meaning: 'on or off: whether GraphQL clients may ask for the schema',
    default: 'off in production, else on',
  },
  EXPLORERS: {
    fallback: '',
    meaning: 'on or off: pages for browsers: /, /console, /docs and GraphiQL',
    default: 'off in production, else on',
  },
  TRUSTED_DOCUMENTS: {
    fallback: '',
    meaning: 'path of a JSON manifest: the only documents that GraphQL clients may run',
    default: 'any document',
  },
  TRUST_PROXY: {
    fallback: '',
    meaning: 'addresses or CIDR ranges of proxies whose X-Forwarded-For is trusted, separated by commas',
  },
  LOG_LEVEL: { fallback: 'info', meaning: logLevels.join(', ') },
  DRAIN_MS: {
    fallback: '1000',
    meaning: 'milliseconds to keep serving after SIGTERM, while clients switch to other instances',
  },
  NODE_ENV: { fallback: 'development', meaning: 'development, test or production: safe defaults for a public service' },
} as const satisfies Readonly<Record<string, Setting>>

export interface Setting {
  /** The value if the variable is missing or empty. */
  readonly fallback: string
  readonly meaning: string
  /** The text for the default in `--help`, if the default depends on other settings. */
  readonly default?: string
}

type SettingName = keyof typeof settings

const switches = ['on', 'off'] as const
const booleans = ['true', 'false'] as const
const policies = ['open', 'enforced'] as const

function integer(name: SettingName, value: string, least: number, most: number): number {
  const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
  if (number >= least && number <= most) return number
  throw new ConfigError(`${name}: must be a whole number from ${least} to ${most}`)
}

/** Threads can share a port only where the system distributes its connections among them. */
const canShare = process.platform === 'linux'
const usualThreads = canShare ? Math.min(8, Math.max(1, availableParallelism() - 1)) : 1

function threads(value: string): number {
  const count = integer('THREADS', value, 1, 8)
  if (count === 1 || canShare) return count
  throw new ConfigError('THREADS: must be 1 on this system; more than one needs Linux')
}

function oneOf<Choice extends string>(name: SettingName, value: string, choices: readonly Choice[]): Choice {
  const choice = choices.find(candidate => candidate === value.toLowerCase())
  if (choice !== undefined) return choice
  throw new ConfigError(`${name}: must be one of ${choices.join(', ')}`)
}

function token(name: SettingName, value: string): string | undefined {
  if (value === '') return undefined
  if (/^[\x21-\x7e]+$/.test(value)) return value
  throw new ConfigError(`${name}: must be visible ASCII characters without blanks`)
}

function database(value: string, poolMax: number, pooler: boolean): DatabaseConfig {
  if (/^postgres(ql)?:\/\//.test(value)) {
    if (!URL.canParse(value)) throw new ConfigError('DATABASE_URL: is not a valid postgres:// address')
    return Object.freeze({ kind: 'postgres', url: value, poolMax, pooler })
  }
  const path = /^sqlite:(.+)$/.exec(value)?.[1]
  if (path !== undefined) return Object.freeze({ kind: 'sqlite', path: path.replace(/^\/\/(?=\/)/, '') })
  throw new ConfigError('DATABASE_URL: must be sqlite:<path>, sqlite::memory: or postgres://…')
}

function redis(value: string): RedisConfig | undefined {
  if (value === '') return undefined
  try {
    const { protocol, hostname, port, username, password, pathname, search, hash } = new URL(value)
    const database = /^\/?(\d{0,6})$/.exec(pathname)?.[1]
    const sound = /^rediss?:$/.test(protocol) && hostname !== '' && port !== '0' && search + hash === ''
    if (sound && database !== undefined) {
      return Object.freeze({
        host: hostname.replace(/^\[|\]$/g, ''),
        port: Number(port || 6379),
        ...(username !== '' && { username: decodeURIComponent(username) }),
        ...(password !== '' && { password: decodeURIComponent(password) }),
        database: Number(database),
        tls: protocol === 'rediss:',
      })
    }
  } catch {
    // The error below does not quote the address, which holds a password.
  }
  throw new ConfigError('REDIS_URL: must be redis://… or rediss://…, with host[:port][/database] and no parameters')
}

function linkPrefix(value: string): string {
  if (value === '' || /^(?:https?:\/\/[^\s/?#]+)?(?:\/[\w.~-]+)*$/.test(value)) return value
  throw new ConfigError('LINK_PREFIX: must be a path such as /shop, or an http(s) address, without a slash at its end')
}

function paths(value: string): readonly string[] {
  const list = value.split(',').map(path => path.trim())
  if (list.every(path => /^\/[^\s?#]*$/.test(path))) return Object.freeze(list)
  throw new ConfigError('RATE_LIMIT_PATHS: must be paths such as /api/, separated by commas')
}

function proxies(value: string): readonly string[] {
  const list = value === '' ? [] : value.split(',').map(range => range.trim())
  for (const range of list) {
    const [address = '', prefix, ...rest] = range.split('/')
    const family = isIP(address)
    const longest = family === 4 ? 32 : 128
    const isValidPrefix = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= longest)
    if (family === 0 || !isValidPrefix || rest.length > 0) {
      throw new ConfigError('TRUST_PROXY: must be addresses or CIDR ranges such as 10.0.0.0/8, separated by commas')
    }
  }
  return Object.freeze(list)
}

function origins(value: string): readonly string[] {
  const list = value.split(',').map(origin => origin.trim())
  for (const origin of list) {
    if (origin === '*') continue
    if (!URL.canParse(origin) || new URL(origin).origin !== origin) {
      throw new ConfigError('CORS_ORIGINS: must be * or origins such as https://app.example.com, separated by commas')
    }
  }
  return Object.freeze(list)
}
