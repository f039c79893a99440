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

/** Of each variable: the property that it sets, the default of that, a text, and what the text means. */
const variables: Readonly<Record<keyof typeof settings, readonly [string, unknown, string, unknown]>> = {
  HOST: ['host', '127.0.0.1', '0.0.0.0', '0.0.0.0'],
  PORT: ['port', 4000, ' 65535 ', 65_535],
  THREADS: ['threads', usualThreads, '8', 8],
  DATABASE_URL: ['database', { kind: 'sqlite', path: 'data/duet.db' }, postgresUrl, postgres],
  DATABASE_POOL_MAX: ['database.poolMax', 10, '25', 25],
  DATABASE_POOLER: ['database.pooler', false, 'transaction', true],
  DATABASE_TIMEOUT_MS: ['databaseTimeoutMs', 1_200, '600000', 600_000],
  BACKUP_DIR: ['backupDir', undefined, '/mnt/backups', '/mnt/backups'],
  BACKUP_KEEP: ['backupKeep', 14, '1', 1],
  REDIS_URL: [
    'redis',
    undefined,
    'rediss://u:s%40cret@redis.example:6380/3',
    'rediss://u:s%40cret@redis.example:6380/3',
  ],
  REDIS_TIMEOUT_MS: ['redisTimeoutMs', 250, '10', 10],
  SOCKET_INIT_TIMEOUT_MS: ['socketInitTimeoutMs', 3_000, '100', 100],
  SOCKETS_PER_CLIENT: ['socketsPerClient', 1_000, '1', 1],
  SOCKET_MESSAGES_PER_SECOND: ['socketMessagesPerSecond', 50, '0', 0],
  SUBSCRIPTION_GROUPS_PER_CLIENT: ['subscriptionGroupsPerClient', 200, '1', 1],
  SUBSCRIPTION_GROUPS: ['subscriptionGroups', 10_000, '1000000', 1_000_000],
  EVENT_RETENTION_SECONDS: ['eventRetentionSeconds', 3_600, '60', 60],
  BODY_LIMIT_BYTES: ['bodyLimitBytes', 1_048_576, '2048', 2048],
  CONNECTIONS_PER_CLIENT: ['connectionsPerClient', 1_000, '0', 0],
  MAINTENANCE: ['maintenance', false, 'ON', true],
  CORS_ORIGINS: [
    'corsOrigins',
    ['loopback'],
    'https://a.example, http://b:3000',
    ['https://a.example', 'http://b:3000'],
  ],
  ALLOWED_HOSTS: ['allowedHosts', [], 'duet.example, Box:80,[fd00::1]', ['duet.example', 'box:80', '[fd00::1]']],
  PUBLIC_DIR: ['publicDir', 'public', 'site', 'site'],
  METRICS_TOKEN: ['metricsToken', undefined, 'm3trics!', 'm3trics!'],
  LOG_LEVEL: ['logLevel', 'info', 'Debug', 'debug'],
  LOG_REQUESTS: ['logRequests', 'all', 'errors', 'errors'],
  SLOW_OPERATION_MS: ['slowOperationMs', 200, '0', 0],
  OTEL_EXPORTER_OTLP_ENDPOINT: [
    'tracesEndpoint',
    undefined,
    'http://collector:4318/',
    'http://collector:4318/v1/traces',
  ],
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ['tracesEndpoint', undefined, 'https://traces/in', 'https://traces/in'],
  OTEL_SERVICE_NAME: ['serviceName', 'duet', 'shop', 'shop'],
  OTEL_TRACES_SAMPLER: ['tracesSampler', 'parentbased_always_on', 'traceidratio', 'traceidratio'],
  OTEL_TRACES_SAMPLER_ARG: ['tracesRatio', 1, '0.25', 0.25],
  DRAIN_MS: ['drainMs', 1_000, '0', 0],
  DEMO_DATA: ['demoData', true, 'false', false],
  ACCESS_POLICY: ['accessPolicy', 'open', 'enforced', 'enforced'],
  SIGN_UP: ['signUp', 'open', 'Closed', 'closed'],
  TOKEN_KEYS: ['tokenKeys', undefined, '/run/secrets/keys.json', '/run/secrets/keys.json'],
  TOKEN_TTL_SECONDS: ['tokenTtlSeconds', 3600, '60', 60],
  SESSION_TTL_SECONDS: ['sessionTtlSeconds', 2_592_000, '315360000', 315_360_000],
  SMTP_URL: ['mail.kind', 'log', 'smtps://u:p@mail.example', 'smtp'],
  MAIL_FROM: ['mail.from', undefined, 'Duet <duet@example.com>', 'Duet <duet@example.com>'],
  PUBLIC_URL: ['mail.publicUrl', undefined, 'https://duet.example/shop/', 'https://duet.example/shop'],
  IDEMPOTENCY_TTL_SECONDS: ['idempotencyTtlSeconds', 86_400, '1', 1],
  CURRENCY: ['currency.code', undefined, 'EUR', 'EUR'],
  CURRENCY_DIGITS: ['currency.digits', 0, '2', 2],
  LINK_PREFIX: ['linkPrefix', '', '/shop', '/shop'],
  RATE_LIMIT_MAX: ['rateLimit.max', 100, '0', 0],
  RATE_LIMIT_WINDOW_MS: ['rateLimit.windowMs', 60_000, '1000', 1000],
  RATE_LIMIT_PATHS: ['rateLimit.paths', ['/api/', '/graphql'], '/, /x', ['/', '/x']],
  LOGIN_LIMIT_MAX: ['loginLimitMax', 10, '0', 0],
  QUERY_MAX_DEPTH: ['queryMaxDepth', 5, '20', 20],
  QUERY_MAX_COMPLEXITY: ['queryMaxComplexity', 1000, '1', 1],
  INTROSPECTION: ['introspection', true, 'off', false],
  EXPLORERS: ['explorers', true, 'off', false],
  TRUSTED_DOCUMENTS: ['trustedDocuments', undefined, '/etc/documents.json', '/etc/documents.json'],
  TRUST_PROXY: ['trustProxy', [], '10.0.0.0/8, ::1', ['10.0.0.0/8', '::1']],
  NODE_ENV: ['production', false, 'production', true],
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

const local = { paths: ['/api/', '/graphql'], metricsOpen: true, loopback: true }
const convenient = { ...local, demoData: true, accessPolicy: 'open', corsOrigins: ['loopback'] }
const safe = { paths: ['/'], metricsOpen: false, demoData: false, accessPolicy: 'enforced', corsOrigins: ['*'] }

// Literal values, not computed ones: an open service with a known admin password must never be a default by accident.
const derived: readonly (readonly [environment: Environment, defaults: object])[] = [
  [{}, convenient],
  [{ NODE_ENV: 'development' }, convenient],
  [{ NODE_ENV: 'test' }, convenient],
  [{ HOST: '127.8.7.6' }, convenient],
  [{ HOST: '::1' }, convenient],
  [{ HOST: 'localhost' }, convenient],
  [{ DATABASE_URL: 'sqlite::memory:' }, convenient],
  [{ DATABASE_URL: postgresUrl }, { ...convenient, demoData: false }],
  [{ ACCESS_POLICY: 'enforced' }, { ...convenient, accessPolicy: 'enforced', corsOrigins: ['*'] }],
  [
    { HOST: '0.0.0.0', ACCESS_POLICY: 'open' },
    { ...safe, loopback: false, accessPolicy: 'open', corsOrigins: ['loopback'] },
  ],
  ...[
    '0.0.0.0',
    '::',
    '192.168.0.7',
    '10.127.0.1',
    'duet.example',
    'LOCALHOST',
    '127.0.0.1.example.com',
    '::ffff:127.0.0.1',
  ].flatMap(HOST => [
    [{ HOST }, { ...safe, loopback: false }] as const,
    [
      { HOST, NODE_ENV: 'production', DATABASE_URL: postgresUrl },
      { ...safe, loopback: false },
    ] as const,
  ]),
  ...['127.0.0.1', '::1', 'localhost'].map(
    HOST =>
      [
        { HOST, NODE_ENV: 'production' },
        { ...safe, loopback: true },
      ] as const,
  ),
]

test('on loopback outside production defaults are convenient, elsewhere they are safe', () => {
  for (const [environment, defaults] of derived) {
    const { rateLimit, metricsOpen, loopback, demoData, accessPolicy, corsOrigins } = readConfig(environment)
    const found = { paths: rateLimit.paths, metricsOpen, loopback, demoData, accessPolicy, corsOrigins }
    assert.deepEqual(found, defaults, JSON.stringify(environment))
  }
})

test('introspection and pages are off exactly in production, and variables always override derived defaults', () => {
  for (const [environment] of derived) {
    const { introspection, explorers } = readConfig(environment)
    const expected = environment.NODE_ENV !== 'production'
    assert.deepEqual([introspection, explorers], [expected, expected], JSON.stringify(environment))
    const on = { INTROSPECTION: 'on', EXPLORERS: 'on', DEMO_DATA: 'true', ACCESS_POLICY: 'open' }
    const off = { INTROSPECTION: 'off', EXPLORERS: 'off', DEMO_DATA: 'false', ACCESS_POLICY: 'enforced' }
    for (const set of [on, off]) {
      const { introspection, explorers, demoData, accessPolicy } = readConfig({ ...environment, ...set })
      assert.deepEqual(
        [introspection, explorers, demoData, accessPolicy],
        set === on ? [true, true, true, 'open'] : [false, false, false, 'enforced'],
      )
    }
  }
})

test('DATABASE_URL selects the engine and the location', () => {
  const database = (DATABASE_URL: string) => readConfig({ DATABASE_URL }).database
  assert.deepEqual(database('sqlite::memory:'), { kind: 'sqlite', path: ':memory:' })
  assert.deepEqual(database('sqlite:/var/lib/duet.db'), { kind: 'sqlite', path: '/var/lib/duet.db' })
  assert.deepEqual(database('sqlite:///var/lib/duet.db'), { kind: 'sqlite', path: '/var/lib/duet.db' })
  assert.equal(database('postgresql://h/x').kind, 'postgres')
})

test('localhost means 127.0.0.1 only, not a second server', () => {
  assert.equal(readConfig({ HOST: 'localhost' }).host, '127.0.0.1')
})

test('settings cannot be changed once they are read', () => {
  const config = readConfig({ CORS_ORIGINS: 'https://a.example' })
  for (const part of [config, config.database, config.corsOrigins]) assert.ok(Object.isFrozen(part))
})

/** Every variable that is checked while the settings are read. HOST and files are checked at the start. */
const wrong: Readonly<Partial<Record<keyof typeof settings, readonly string[]>>> = {
  PORT: ['-1', '65536', '1.5', '0x50', 'http', '1e3', '4000 4001', '９'],
  THREADS: ['9'],
  DATABASE_URL: ['duet.db', 'sqlite:', 'mysql://u:hunter2@h/x', 'postgres://u:hunter2@h:99999/x', 'hunter2'],
  DATABASE_POOL_MAX: ['0', '1001', 'many'],
  SMTP_URL: ['mail.example:25', 'http://u:hunter2@mail.example', 'smtp://', 'smtp://u:hunter2@h:99999', 'hunter2'],
  MAIL_FROM: ['duet', 'Duet <duet>', 'a@b, c@d', 'a@b\r\nBcc: c@d', 'Duet <a@b>\nX: y', '<a@b> c'],
  PUBLIC_URL: ['duet.example', 'ftp://duet.example', 'https://duet.example/?x=1', 'https://a b', 'javascript:alert(1)'],
  DATABASE_POOLER: ['session'],
  DATABASE_TIMEOUT_MS: ['199'],
  BACKUP_KEEP: ['0'],
  EVENT_RETENTION_SECONDS: ['59'],
  REDIS_URL: ['http://:hunter2@127.0.0.1'],
  REDIS_TIMEOUT_MS: ['9'],
  BODY_LIMIT_BYTES: ['0', '1023', '67108865', '1MB'],
  CONNECTIONS_PER_CLIENT: ['-1', '1000001', '1.5', 'many'],
  MAINTENANCE: ['yes', 'true', '1', 'perhaps'],
  CORS_ORIGINS: ['everyone', 'https://a.example/', 'https://a.example,', 'https://a.example;https://b.example', 'null'],
  ALLOWED_HOSTS: ['*', 'http://a.example', 'a.example/', 'a b', 'a.example,', '::1', 'a@b', 'a:port', '.example'],
  METRICS_TOKEN: ['hunter2 hunter2', 'hünter2'],
  LOG_LEVEL: ['loud', '30'],
  LOG_REQUESTS: ['none', 'on'],
  SLOW_OPERATION_MS: ['-1', '0.5', 'never'],
  OTEL_EXPORTER_OTLP_ENDPOINT: ['collector:4318', 'grpc://collector', 'http://a b'],
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ['collector:4318'],
  OTEL_SERVICE_NAME: ['hunter2 hunter2'],
  OTEL_TRACES_SAMPLER: ['on', 'jaeger_remote'],
  OTEL_TRACES_SAMPLER_ARG: ['2', '-1', 'all', '1.5'],
  DRAIN_MS: ['-1', '8001', '1s'],
  DEMO_DATA: ['perhaps'],
  ACCESS_POLICY: ['closed'],
  SIGN_UP: ['enforced'],
  SOCKET_INIT_TIMEOUT_MS: ['99'],
  SOCKETS_PER_CLIENT: ['0', '-1', '1000001', '1.5', 'many'],
  SOCKET_MESSAGES_PER_SECOND: ['-1', '1000001', '1.5', '1/s'],
  SUBSCRIPTION_GROUPS_PER_CLIENT: ['0', '-1', '1000001', '1.5', 'many'],
  SUBSCRIPTION_GROUPS: ['0', '-1', '1000001', '1.5', '10,000'],
  TOKEN_TTL_SECONDS: ['0'],
  SESSION_TTL_SECONDS: ['0'],
  IDEMPOTENCY_TTL_SECONDS: ['0', '-1', '31536001', '1.5', '1d', '86,400', '1e3'],
  CURRENCY: ['eur', 'EURO', 'ZZZ', '€'],
  CURRENCY_DIGITS: ['-1', '5', '1.5', 'two'],
  LINK_PREFIX: ['shop/'],
  RATE_LIMIT_MAX: ['-1'],
  RATE_LIMIT_WINDOW_MS: ['0'],
  RATE_LIMIT_PATHS: ['api'],
  LOGIN_LIMIT_MAX: ['many'],
  QUERY_MAX_DEPTH: ['-1', '21', '1.5', 'deep', '1e1', '０'],
  QUERY_MAX_COMPLEXITY: ['0', '-1', '1000001', '1.5', '1,000', '1e3'],
  INTROSPECTION: ['yes', 'true', '1', 'perhaps'],
  EXPLORERS: ['yes', 'false', '0', 'perhaps'],
  TRUST_PROXY: ['everyone'],
  NODE_ENV: ['prod', 'Staging'],
}

test('a wrong value of any variable is refused with one line that names it and does not quote the value', () => {
  const atTheStart = ['BACKUP_DIR', 'HOST', 'PUBLIC_DIR', 'TOKEN_KEYS', 'TRUSTED_DOCUMENTS']
  assert.deepEqual([...Object.keys(wrong), ...atTheStart].sort(), Object.keys(variables).sort())
  for (const [name, values] of Object.entries(wrong)) {
    for (const value of values) {
      assert.throws(
        () => readConfig({ [name]: value }),
        (error: unknown) => {
          assert.ok(error instanceof ConfigError, `${name}=${value}`)
          assert.match(error.message, new RegExp(`^${name}: [^\n]+$`))
          assert.doesNotMatch(error.message, /hunter2|hünter2/)
          return true
        },
      )
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

test('REDIS_URL is an address of Redis with all its parts, and nothing else', () => {
  for (const address of ['redis://127.0.0.1', 'redis://127.0.0.1:7000/12', 'redis://u:p%3A%2F@[::1]', 'REDISS://h/']) {
    assert.equal(readConfig({ REDIS_URL: address }).redis, address.replace('REDISS', 'rediss'))
  }
  const unsound = [
    '127.0.0.1:6379',
    'redis:',
    'redis://',
    'redis:///1',
    'redis://h:0',
    'redis://h:65536',
    'redis://h/a',
  ]
  for (const address of [...unsound, 'redis://h/1/2', 'redis://h?db=1', 'redis://h#x', 'redis://:%zz@h', 'unix:///x']) {
    assert.throws(() => readConfig({ REDIS_URL: address }), /^ConfigError: REDIS_URL: must be redis:/, address)
  }
})
