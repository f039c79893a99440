import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ConfigError, type Environment, readConfig, type settings } from '../../src/config.ts'

const usualThreads = process.platform === 'linux' ? Math.min(8, Math.max(1, availableParallelism() - 1)) : 1
const postgresUrl = 'postgres://user:secret@db.example:5432/duet?sslmode=verify-full'
const postgres = { kind: 'postgres', url: postgresUrl, poolMax: 10, pooler: false }

const withMail = { MAIL_FROM: 'duet@example.com', PUBLIC_URL: 'https://duet.example' }

/** Of each variable: the property that it sets, the default of that, a text, what the text means, and wrong texts. */
const variables: Readonly<Record<keyof typeof settings, readonly [string, unknown, string, unknown, ...string[]]>> = {
  HOST: ['host', '127.0.0.1', '0.0.0.0', '0.0.0.0'],
  PORT: ['port', 4000, ' 65535 ', 65_535, '65536', '0x50', 'http', '4000 4001'],
  THREADS: ['threads', usualThreads, '8', 8, '9'],
  DATABASE_URL: ['database', { kind: 'sqlite', path: 'data/duet.db' }, postgresUrl, postgres, 'duet.db', 'sqlite:'],
  DATABASE_POOL_MAX: ['database.poolMax', 10, '25', 25, '0', '1001'],
  DATABASE_POOLER: ['database.pooler', false, 'transaction', true, 'session'],
  DATABASE_TIMEOUT_MS: ['databaseTimeoutMs', 1_200, '600000', 600_000, '199'],
  BACKUP_DIR: ['backupDir', undefined, '/mnt/backups', '/mnt/backups'],
  BACKUP_KEEP: ['backupKeep', 14, '1', 1, '0'],
  REDIS_URL: ['redis', undefined, 'rediss://u:s%40cret@r:6380/3', 'rediss://u:s%40cret@r:6380/3', 'http://:hunter2@h'],
  REDIS_TIMEOUT_MS: ['redisTimeoutMs', 250, '10', 10, '9'],
  SOCKET_INIT_TIMEOUT_MS: ['socketInitTimeoutMs', 3_000, '100', 100, '99'],
  SOCKETS_PER_CLIENT: ['socketsPerClient', 1_000, '1', 1, '0', '1000001'],
  SOCKET_MESSAGES_PER_SECOND: ['socketMessagesPerSecond', 50, '0', 0, '1000001', '1/s'],
  SUBSCRIPTION_GROUPS_PER_CLIENT: ['subscriptionGroupsPerClient', 200, '1', 1, '0', '1000001'],
  SUBSCRIPTION_GROUPS: ['subscriptionGroups', 10_000, '1000000', 1_000_000, '0', '1000001'],
  EVENT_RETENTION_SECONDS: ['eventRetentionSeconds', 3_600, '60', 60, '59'],
  BODY_LIMIT_BYTES: ['bodyLimitBytes', 1_048_576, '2048', 2048, '0', '1023', '67108865', '1MB'],
  CONNECTIONS_PER_CLIENT: ['connectionsPerClient', 1_000, '0', 0, '1000001'],
  MAINTENANCE: ['maintenance', false, 'ON', true, 'yes', 'true', '1', 'perhaps'],
  CORS_ORIGINS: ['corsOrigins', ['loopback'], 'https://a, http://b:3000', ['https://a', 'http://b:3000'], 'everyone'],
  ALLOWED_HOSTS: ['allowedHosts', [], 'duet.example, Box:80,[fd00::1]', ['duet.example', 'box:80', '[fd00::1]'], '*'],
  PUBLIC_DIR: ['publicDir', 'public', 'site', 'site'],
  METRICS_TOKEN: ['metricsToken', undefined, 'm3trics!', 'm3trics!', 'hunter2 hunter2', 'hünter2'],
  LOG_LEVEL: ['logLevel', 'info', 'Debug', 'debug', 'loud', '30'],
  LOG_REQUESTS: ['logRequests', 'all', 'errors', 'errors', 'none', 'on'],
  SLOW_OPERATION_MS: ['slowOperationMs', 200, '0', 0],
  OTEL_EXPORTER_OTLP_ENDPOINT: ['tracesEndpoint', undefined, 'http://c:43/', 'http://c:43/v1/traces', 'c:43'],
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ['tracesEndpoint', undefined, 'https://traces/in', 'https://traces/in', 'c:43'],
  OTEL_SERVICE_NAME: ['serviceName', 'duet', 'shop', 'shop', 'hunter2 hunter2'],
  OTEL_TRACES_SAMPLER: ['tracesSampler', 'parentbased_always_on', 'traceidratio', 'traceidratio', 'on'],
  OTEL_TRACES_SAMPLER_ARG: ['tracesRatio', 1, '0.25', 0.25, '2'],
  DRAIN_MS: ['drainMs', 1_000, '0', 0, '8001', '1s'],
  DEMO_DATA: ['demoData', true, 'false', false, 'perhaps'],
  ACCESS_POLICY: ['accessPolicy', 'open', 'enforced', 'enforced', 'closed'],
  SIGN_UP: ['signUp', 'open', 'Closed', 'closed', 'enforced'],
  TOKEN_KEYS: ['tokenKeys', undefined, '/run/secrets/keys.json', '/run/secrets/keys.json'],
  TOKEN_TTL_SECONDS: ['tokenTtlSeconds', 3600, '60', 60, '0'],
  SESSION_TTL_SECONDS: ['sessionTtlSeconds', 2_592_000, '315360000', 315_360_000, '0'],
  SMTP_URL: ['mail.kind', 'log', 'smtps://u:p@mail.example', 'smtp', 'mail.example:25', 'smtp://', 'hunter2'],
  MAIL_FROM: ['mail.from', undefined, 'Duet <duet@example.com>', 'Duet <duet@example.com>', 'duet', 'Duet <duet>'],
  PUBLIC_URL: ['mail.publicUrl', undefined, 'https://duet.example/shop/', 'https://duet.example/shop', 'duet.example'],
  IDEMPOTENCY_TTL_SECONDS: ['idempotencyTtlSeconds', 86_400, '1', 1, '0', '31536001', '1d'],
  CURRENCY: ['currency.code', undefined, 'EUR', 'EUR', 'eur', 'EURO', 'ZZZ', '€'],
  CURRENCY_DIGITS: ['currency.digits', 0, '2', 2, '5'],
  LINK_PREFIX: ['linkPrefix', '', '/shop', '/shop', 'shop/'],
  RATE_LIMIT_MAX: ['rateLimit.max', 100, '0', 0],
  RATE_LIMIT_WINDOW_MS: ['rateLimit.windowMs', 60_000, '1000', 1000, '0'],
  RATE_LIMIT_PATHS: ['rateLimit.paths', ['/api/', '/graphql'], '/, /x', ['/', '/x'], 'api'],
  LOGIN_LIMIT_MAX: ['loginLimitMax', 10, '0', 0],
  QUERY_MAX_DEPTH: ['queryMaxDepth', 5, '20', 20, '21'],
  QUERY_MAX_COMPLEXITY: ['queryMaxComplexity', 1000, '1', 1, '0', '1000001'],
  INTROSPECTION: ['introspection', true, 'off', false, 'yes', 'true', '1', 'perhaps'],
  EXPLORERS: ['explorers', true, 'off', false, 'yes', 'false', '0', 'perhaps'],
  TRUSTED_DOCUMENTS: ['trustedDocuments', undefined, '/etc/documents.json', '/etc/documents.json'],
  TRUST_PROXY: ['trustProxy', [], '10.0.0.0/32, ::1', ['10.0.0.0/32', '::1'], 'everyone', '10.0.0.0/33'],
  NODE_ENV: ['production', false, 'production', true, 'prod', 'Staging'],
}

/** Wrong texts of every variable that is a number. */
const noNumbers = ['-1', '1.5', '1e3', '1,000', 'many', '９']

const moreWrong: Readonly<Partial<Record<keyof typeof settings, readonly string[]>>> = {
  REDIS_URL: [
    ...['127.0.0.1:6379', 'redis:', 'redis://', 'redis:///1', 'redis://h:0', 'redis://h:65536', 'unix:///x'],
    ...['redis://h/a', 'redis://h/1/2', 'redis://h?db=1', 'redis://h#x', 'redis://:%zz@h'],
  ],
  DATABASE_URL: ['mysql://u:hunter2@h/x', 'postgres://u:hunter2@h:99999/x', 'hunter2'],
  SMTP_URL: ['http://u:hunter2@mail.example', 'smtp://u:hunter2@h:99999'],
  MAIL_FROM: ['a@b, c@d', 'a@b\r\nBcc: c@d', 'Duet <a@b>\nX: y', '<a@b> c'],
  PUBLIC_URL: ['ftp://duet.example', 'https://duet.example/?x=1', 'https://a b', 'javascript:alert(1)'],
  CORS_ORIGINS: ['https://a.example/', 'https://a.example,', 'https://a.example;https://b.example', 'null'],
  ALLOWED_HOSTS: ['http://a.example', 'a.example/', 'a b', 'a.example,', '::1', 'a@b', 'a:port', '.example'],
  OTEL_EXPORTER_OTLP_ENDPOINT: ['http://a b', 'grpc://c'],
  OTEL_TRACES_SAMPLER: ['jaeger_remote'],
}

/** The value of a property, such as `rateLimit.max`. */
function settingOf(environment: Environment, property: string): unknown {
  const step = (value: unknown, name: string) => (value as Record<string, unknown>)[name]
  return property.split('.').reduce(step, readConfig(environment) as unknown)
}

test('every variable has its documented default, also if it is empty or blank, and an effect', () => {
  for (const [name, [property, usual, text, meaning]] of Object.entries(variables)) {
    const base = property.startsWith('database.') ? { DATABASE_URL: postgresUrl } : name === 'SMTP_URL' ? withMail : {}
    for (const value of [undefined, '', ' ', '\t'])
      assert.deepEqual(settingOf({ ...base, [name]: value }, property), usual)
    assert.deepEqual(settingOf({ ...base, [name]: text }, property), meaning, name)
  }
  assert.equal(readConfig({ HOST: 'localhost' }).host, '127.0.0.1', 'one server, not a second one on ::1')
})

test('every property of the settings is set by a variable or by HOST and NODE_ENV together, and used', () => {
  const folder = join(import.meta.dirname, '..', '..', 'src')
  const files = globSync('**/*.ts', { cwd: folder }).filter(
    file => file !== 'config.ts' && !file.startsWith('settings/'),
  )
  const words = new Set(files.flatMap(file => readFileSync(join(folder, file), 'utf8').match(/\w+/g) ?? []))
  const unused = Object.keys(readConfig({})).filter(name => !words.has(name))
  assert.deepEqual(unused, [], 'only src/config.ts names these')
  const known = new Set([
    ...Object.values(variables).map(([property]) => property.split('.')[0]),
    'loopback',
    'metricsOpen',
  ])
  assert.deepEqual(new Set(Object.keys(readConfig({}))), known)
})

const open = { accessPolicy: 'open', corsOrigins: ['loopback'] }
const enforced = { accessPolicy: 'enforced', corsOrigins: ['*'] }
const convenient = {
  ...open,
  'rateLimit.paths': ['/api/', '/graphql'],
  metricsOpen: true,
  loopback: true,
  demoData: true,
}
const safe = { ...enforced, 'rateLimit.paths': ['/'], metricsOpen: false, loopback: false, demoData: false }
const safeOnLoopback = { ...safe, loopback: true }
const beyond = ['0.0.0.0', '::', '192.168.0.7', '10.127.0.1', 'duet.example', 'LOCALHOST', '127.0.0.1.example.com']

// Literal values, not computed ones: an open service with a known admin password must never be a default by accident.
const derived: readonly (readonly [environment: Environment, defaults: object])[] = [
  [{}, convenient],
  [{ NODE_ENV: 'development' }, convenient],
  [{ NODE_ENV: 'test' }, convenient],
  ...['127.8.7.6', '::1', 'localhost'].map(HOST => [{ HOST }, convenient] as const),
  [{ DATABASE_URL: 'sqlite::memory:' }, convenient],
  [{ DATABASE_URL: postgresUrl }, { ...convenient, demoData: false }],
  [{ ACCESS_POLICY: 'enforced' }, { ...convenient, ...enforced }],
  [
    { HOST: '0.0.0.0', ACCESS_POLICY: 'open' },
    { ...safe, ...open },
  ],
  ...[...beyond, '::ffff:127.0.0.1'].map(HOST => [{ HOST }, safe] as const),
  [{ HOST: '0.0.0.0', NODE_ENV: 'production', DATABASE_URL: postgresUrl }, safe],
  ...['127.0.0.1', '::1', 'localhost'].map(HOST => [{ HOST, NODE_ENV: 'production' }, safeOnLoopback] as const),
]

test('on loopback outside production defaults are convenient, elsewhere they are safe, and variables override them', () => {
  for (const [environment, defaults] of derived) {
    const isShown = environment.NODE_ENV !== 'production' // these depend on nothing else
    const on = { INTROSPECTION: 'on', EXPLORERS: 'on', DEMO_DATA: 'true', ACCESS_POLICY: 'open' }
    const off = { INTROSPECTION: 'off', EXPLORERS: 'off', DEMO_DATA: 'false', ACCESS_POLICY: 'enforced' }
    for (const [set, expected] of [
      [{}, { ...defaults, introspection: isShown, explorers: isShown }],
      [on, { introspection: true, explorers: true, demoData: true, accessPolicy: 'open' }],
      [off, { introspection: false, explorers: false, demoData: false, accessPolicy: 'enforced' }],
    ] as const) {
      const all = { ...environment, ...set }
      for (const [property, value] of Object.entries(expected))
        assert.deepEqual(settingOf(all, property), value, `${property} with ${JSON.stringify(all)}`)
    }
  }
})

test('DATABASE_URL selects the engine and the location, and REDIS_URL keeps all its parts', () => {
  const database = (DATABASE_URL: string) => readConfig({ DATABASE_URL }).database
  assert.deepEqual(database('sqlite::memory:'), { kind: 'sqlite', path: ':memory:' })
  assert.deepEqual(database('sqlite:/var/lib/duet.db'), { kind: 'sqlite', path: '/var/lib/duet.db' })
  assert.deepEqual(database('sqlite:///var/lib/duet.db'), { kind: 'sqlite', path: '/var/lib/duet.db' })
  assert.equal(database('postgresql://h/x').kind, 'postgres')
  for (const address of ['redis://127.0.0.1', 'redis://127.0.0.1:7000/12', 'redis://u:p%3A%2F@[::1]', 'REDISS://h/'])
    assert.equal(readConfig({ REDIS_URL: address }).redis, address.replace('REDISS', 'rediss'))
})

test('settings cannot be changed once they are read', () => {
  const config = readConfig({ CORS_ORIGINS: 'https://a.example' })
  for (const part of [config, config.database, config.corsOrigins]) assert.ok(Object.isFrozen(part))
})

test('a wrong value of any variable is refused with one line that names it and does not quote the value', () => {
  const atTheStart = ['BACKUP_DIR', 'HOST', 'PUBLIC_DIR', 'TOKEN_KEYS', 'TRUSTED_DOCUMENTS']
  for (const [name, [, , , meaning, ...wrong]] of Object.entries(variables)) {
    const more = moreWrong[name as keyof typeof settings] ?? []
    const values = [...wrong, ...more, ...(typeof meaning === 'number' ? noNumbers : [])]
    assert.equal(values.length === 0, atTheStart.includes(name), name)
    for (const value of values) {
      const read = () => readConfig({ [name]: value })
      assert.throws(read, { constructor: ConfigError, message: new RegExp(`^${name}: [^\n]+$`) }, `${name}=${value}`)
      assert.throws(read, ({ message }: Error) => !/hunter2|hünter2/.test(message))
    }
  }
})

test('mails leave the machine only where nobody else can change the e-mail that they go to', () => {
  const mail = { ...withMail, SMTP_URL: 'smtps://mail.example' }
  const kinds = [{}, { HOST: '::', ACCESS_POLICY: 'enforced' }, { NODE_ENV: 'production' }]
  for (const environment of kinds) assert.equal(readConfig({ ...mail, ...environment }).mail?.kind, 'smtp')
  for (const environment of [{ HOST: '::' }, { NODE_ENV: 'production' }])
    assert.throws(() => readConfig({ ...mail, ...environment, ACCESS_POLICY: 'open' }), /SMTP_URL: needs ACCESS_POLICY/)
})
