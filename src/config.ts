import { ConfigError } from './core/errors.ts'
import * as parse from './settings/parse.ts'
import { logLevels, type Setting, type SettingName, settings } from './settings/table.ts'

export { ConfigError } from './core/errors.ts'
export type { DatabaseConfig, MailConfig } from './settings/parse.ts'
export { type Setting, settings } from './settings/table.ts'

/** All settings, read once, checked and frozen. No other module reads the environment. `settings` tells what they mean. */
export type Config = ReturnType<typeof readConfig>

export type Environment = Readonly<Record<string, string | undefined>>

/** The variables of the process. A `.env` file in the current folder adds those that the process does not set. */
export function processEnvironment(): Environment {
  try {
    process.loadEnvFile()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw new ConfigError('.env: cannot be read')
  }
  return process.env
}

export function readConfig(environment: Environment) {
  const read = (name: SettingName) => {
    const { fallback = '' }: Setting = settings[name]
    return environment[name]?.trim() || fallback
  }
  const text = (name: SettingName, pattern: RegExp, complaint: string) => {
    const value = read(name)
    if (value === '' || pattern.test(value)) return value
    throw new ConfigError(`${name}: ${complaint}`)
  }
  const integer = (name: SettingName, least: number, most: number) => parse.integer(name, read(name), least, most)
  const choice = <Choice extends string>(name: SettingName, choices: readonly Choice[], derived?: Choice) =>
    parse.choice(name, read(name) || derived || '', choices)
  const isOn = (name: SettingName, derived?: 'on' | 'off') => choice(name, ['on', 'off'], derived) === 'on'
  const production = choice('NODE_ENV', ['development', 'production', 'test']) === 'production'
  // For `localhost`, Fastify starts a second server for the second address. That server would not have our responses to
  // malformed requests.
  const host = read('HOST') === 'localhost' ? '127.0.0.1' : read('HOST')
  const loopback = host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
  const poolMax = integer('DATABASE_POOL_MAX', 1, 1000)
  const pooler = choice('DATABASE_POOLER', ['none', 'transaction']) === 'transaction'
  const storage = parse.database(read('DATABASE_URL'), poolMax, pooler)
  const isLocal = loopback && !production
  const accessPolicy = choice('ACCESS_POLICY', ['open', 'enforced'], isLocal ? 'open' : 'enforced')
  return Object.freeze({
    production,
    host,
    loopback,
    port: integer('PORT', 0, 65_535),
    threads: parse.threads(read('THREADS')),
    database: storage,
    databaseTimeoutMs: integer('DATABASE_TIMEOUT_MS', 200, 600_000),
    backupDir: read('BACKUP_DIR') || undefined,
    backupKeep: integer('BACKUP_KEEP', 1, 10_000),
    redis: parse.redis(read('REDIS_URL')),
    redisTimeoutMs: integer('REDIS_TIMEOUT_MS', 10, 600_000),
    socketInitTimeoutMs: integer('SOCKET_INIT_TIMEOUT_MS', 100, 600_000),
    socketsPerClient: integer('SOCKETS_PER_CLIENT', 1, 1_000_000),
    socketMessagesPerSecond: integer('SOCKET_MESSAGES_PER_SECOND', 0, 1_000_000),
    subscriptionGroupsPerClient: integer('SUBSCRIPTION_GROUPS_PER_CLIENT', 1, 1_000_000),
    subscriptionGroups: integer('SUBSCRIPTION_GROUPS', 1, 1_000_000),
    eventRetentionSeconds: integer('EVENT_RETENTION_SECONDS', 60, 30 * 86_400),
    bodyLimitBytes: integer('BODY_LIMIT_BYTES', 1024, 64 * 1024 * 1024),
    connectionsPerClient: integer('CONNECTIONS_PER_CLIENT', 0, 1_000_000),
    maintenance: isOn('MAINTENANCE'),
    corsOrigins: parse.origins(read('CORS_ORIGINS') || (accessPolicy === 'open' ? 'loopback' : '*')),
    allowedHosts: parse.hosts(read('ALLOWED_HOSTS')),
    publicDir: read('PUBLIC_DIR'),
    metricsToken: text('METRICS_TOKEN', token, tokenRule) || undefined,
    metricsOpen: isLocal,
    logLevel: choice('LOG_LEVEL', logLevels),
    logRequests: choice('LOG_REQUESTS', ['all', 'errors']),
    slowOperationMs: integer('SLOW_OPERATION_MS', 0, 600_000),
    tracesEndpoint: parse.tracesEndpoint(read),
    serviceName: text('OTEL_SERVICE_NAME', token, tokenRule),
    tracesSampler: text('OTEL_TRACES_SAMPLER', sampler, 'is not a sampler'),
    tracesRatio: Number(text('OTEL_TRACES_SAMPLER_ARG', ratio, 'must be a number from 0 to 1')),
    drainMs: integer('DRAIN_MS', 0, 8_000),
    demoData:
      choice('DEMO_DATA', ['true', 'false'], isLocal && storage.kind === 'sqlite' ? 'true' : 'false') === 'true',
    accessPolicy,
    signUp: choice('SIGN_UP', ['open', 'closed']),
    tokenKeys: read('TOKEN_KEYS') || undefined,
    tokenTtlSeconds: integer('TOKEN_TTL_SECONDS', 1, 365 * 86_400),
    sessionTtlSeconds: integer('SESSION_TTL_SECONDS', 1, 3650 * 86_400),
    mail: parse.mail(read('SMTP_URL'), read('MAIL_FROM'), read('PUBLIC_URL'), {
      isLocal,
      isOpen: accessPolicy === 'open',
    }),
    idempotencyTtlSeconds: integer('IDEMPOTENCY_TTL_SECONDS', 1, 365 * 86_400),
    currency: Object.freeze({ code: parse.currency(read('CURRENCY')), digits: integer('CURRENCY_DIGITS', 0, 4) }),
    linkPrefix: text('LINK_PREFIX', prefix, prefixRule),
    rateLimit: Object.freeze({
      max: integer('RATE_LIMIT_MAX', 0, 1_000_000_000),
      windowMs: integer('RATE_LIMIT_WINDOW_MS', 1, 86_400_000),
      paths: parse.paths(read('RATE_LIMIT_PATHS') || (isLocal ? '/api/,/graphql' : '/')),
    }),
    loginLimitMax: integer('LOGIN_LIMIT_MAX', 0, 1_000_000),
    queryMaxDepth: integer('QUERY_MAX_DEPTH', 0, 20),
    queryMaxComplexity: integer('QUERY_MAX_COMPLEXITY', 1, 1_000_000),
    introspection: isOn('INTROSPECTION', production ? 'off' : 'on'),
    explorers: isOn('EXPLORERS', production ? 'off' : 'on'),
    trustedDocuments: read('TRUSTED_DOCUMENTS') || undefined,
    trustProxy: parse.proxies(read('TRUST_PROXY')),
  })
}

const token = /^[\x21-\x7e]+$/
const tokenRule = 'must be visible ASCII characters without blanks'
const sampler = /^(parentbased_)?(always_on|always_off|traceidratio)$/
const ratio = /^(0|1|0?\.\d{1,15}|1\.0{1,15})$/
const prefix = /^(?:https?:\/\/[^\s/?#]+)?(?:\/[\w.~-]+)*$/
const prefixRule = 'must be a path such as /shop, or an http(s) address, without a slash at its end'
