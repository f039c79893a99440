import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ConfigError, readConfig, settings } from '../../src/config.ts'

test('without any variable the documented defaults apply', () => {
  assert.deepEqual(readConfig({}), {
    production: false,
    host: '127.0.0.1',
    port: 4000,
    threads: process.platform === 'linux' ? Math.min(8, Math.max(1, availableParallelism() - 1)) : 1,
    database: { kind: 'sqlite', path: 'data/duet.db' },
    databaseTimeoutMs: 1_200,
    redis: undefined,
    redisTimeoutMs: 250,
    socketInitTimeoutMs: 3_000,
    socketsPerClient: 1_000,
    socketMessagesPerSecond: 50,
    subscriptionGroupsPerClient: 200,
    subscriptionGroups: 10_000,
    eventRetentionSeconds: 3_600,
    bodyLimitBytes: 1_048_576,
    connectionsPerClient: 1_000,
    maintenance: false,
    corsOrigins: ['loopback'],
    allowedHosts: [],
    publicDir: 'public',
    metricsToken: undefined,
    metricsOpen: true,
    logLevel: 'info',
    drainMs: 1_000,
    demoData: true,
    accessPolicy: 'open',
    signUp: 'open',
    loopback: true,
    tokenKeys: undefined,
    tokenTtlSeconds: 3600,
    sessionTtlSeconds: 2_592_000,
    idempotencyTtlSeconds: 86_400,
    linkPrefix: '',
    rateLimit: { max: 100, windowMs: 60_000, paths: ['/api/', '/graphql'] },
    loginLimitMax: 10,
    queryMaxDepth: 5,
    queryMaxComplexity: 1000,
    introspection: true,
    explorers: true,
    trustedDocuments: undefined,
    trustProxy: [],
  })
})

test('an empty or blank variable means its default, and spaces around a value are ignored', () => {
  const names = Object.keys(settings)
  for (const value of ['', ' ', '\t']) {
    assert.deepEqual(readConfig(Object.fromEntries(names.map(name => [name, value]))), readConfig({}))
  }
  assert.equal(readConfig({ PORT: ' 8080 ' }).port, 8080)
})

test('every variable has an effect', () => {
  const environment = {
    HOST: '0.0.0.0',
    PORT: '65535',
    THREADS: '8',
    DATABASE_URL: 'postgres://user:secret@db.example:5432/duet?sslmode=verify-full',
    DATABASE_POOL_MAX: '25',
    DATABASE_POOLER: 'transaction',
    DATABASE_TIMEOUT_MS: '600000',
    REDIS_URL: 'rediss://duet:s%40cret@redis.example:6380/3',
    REDIS_TIMEOUT_MS: '10',
    SOCKET_INIT_TIMEOUT_MS: '100',
    SOCKETS_PER_CLIENT: '1',
    SOCKET_MESSAGES_PER_SECOND: '0',
    SUBSCRIPTION_GROUPS_PER_CLIENT: '1',
    SUBSCRIPTION_GROUPS: '1000000',
    EVENT_RETENTION_SECONDS: '60',
    BODY_LIMIT_BYTES: '2048',
    CONNECTIONS_PER_CLIENT: '0',
    MAINTENANCE: 'ON',
    CORS_ORIGINS: 'https://a.example, http://localhost:3000',
    ALLOWED_HOSTS: 'duet.example, Box:8080,[fd00::1]',
    PUBLIC_DIR: 'site',
    METRICS_TOKEN: 'm3trics!',
    LOG_LEVEL: 'Debug',
    DRAIN_MS: '0',
    DEMO_DATA: 'true',
    ACCESS_POLICY: 'open',
    SIGN_UP: 'Closed',
    TOKEN_KEYS: '/run/secrets/keys.json',
    TOKEN_TTL_SECONDS: '60',
    SESSION_TTL_SECONDS: '315360000',
    IDEMPOTENCY_TTL_SECONDS: '31536000',
    LINK_PREFIX: '/shop',
    RATE_LIMIT_MAX: '0',
    RATE_LIMIT_WINDOW_MS: '1000',
    RATE_LIMIT_PATHS: '/, /x',
    LOGIN_LIMIT_MAX: '0',
    QUERY_MAX_DEPTH: '0',
    QUERY_MAX_COMPLEXITY: '1000000',
    INTROSPECTION: 'on',
    EXPLORERS: 'on',
    TRUSTED_DOCUMENTS: '/etc/duet/documents.json',
    TRUST_PROXY: '10.0.0.0/8, ::1',
    NODE_ENV: 'production',
  }
  assert.deepEqual(Object.keys(environment).sort(), Object.keys(settings).sort(), 'a variable has no value here')
  assert.deepEqual(readConfig(environment), {
    production: true,
    host: '0.0.0.0',
    port: 65_535,
    threads: 8,
    database: {
      kind: 'postgres',
      url: 'postgres://user:secret@db.example:5432/duet?sslmode=verify-full',
      poolMax: 25,
      pooler: true,
    },
    databaseTimeoutMs: 600_000,
    redis: 'rediss://duet:s%40cret@redis.example:6380/3',
    redisTimeoutMs: 10,
    socketInitTimeoutMs: 100,
    socketsPerClient: 1,
    socketMessagesPerSecond: 0,
    subscriptionGroupsPerClient: 1,
    subscriptionGroups: 1_000_000,
    eventRetentionSeconds: 60,
    bodyLimitBytes: 2048,
    connectionsPerClient: 0,
    maintenance: true,
    corsOrigins: ['https://a.example', 'http://localhost:3000'],
    allowedHosts: ['duet.example', 'box:8080', '[fd00::1]'],
    publicDir: 'site',
    metricsToken: 'm3trics!',
    metricsOpen: false,
    logLevel: 'debug',
    drainMs: 0,
    demoData: true,
    accessPolicy: 'open',
    signUp: 'closed',
    loopback: false,
    tokenKeys: '/run/secrets/keys.json',
    tokenTtlSeconds: 60,
    sessionTtlSeconds: 315_360_000,
    idempotencyTtlSeconds: 31_536_000,
    linkPrefix: '/shop',
    rateLimit: { max: 0, windowMs: 1000, paths: ['/', '/x'] },
    loginLimitMax: 0,
    queryMaxDepth: 0,
    queryMaxComplexity: 1_000_000,
    introspection: true,
    explorers: true,
    trustedDocuments: '/etc/duet/documents.json',
    trustProxy: ['10.0.0.0/8', '::1'],
  })
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

test('every property of the settings is used', () => {
  const folder = join(import.meta.dirname, '..', '..', 'src')
  const files = globSync('**/*.ts', { cwd: folder }).filter(
    file => file !== 'config.ts' && !file.startsWith('settings/'),
  )
  const words = new Set(files.flatMap(file => readFileSync(join(folder, file), 'utf8').match(/\w+/g) ?? []))
  const unused = Object.keys(readConfig({})).filter(name => !words.has(name))
  assert.deepEqual(unused, [], 'only src/config.ts names these')
})

test('settings cannot be changed once they are read', () => {
  const config = readConfig({ CORS_ORIGINS: 'https://a.example' })
  for (const part of [config, config.database, config.corsOrigins]) assert.ok(Object.isFrozen(part))
})

const wrong: readonly (readonly [name: keyof typeof settings, values: readonly string[]])[] = [
  ['PORT', ['-1', '65536', '1.5', '0x50', 'http', '1e3', '4000 4001', '９']],
  ['DATABASE_URL', ['duet.db', 'sqlite:', 'mysql://u:hunter2@h/x', 'postgres://u:hunter2@h:99999/x', 'hunter2']],
  ['DATABASE_POOL_MAX', ['0', '1001', 'many']],
  ['IDEMPOTENCY_TTL_SECONDS', ['0', '-1', '31536001', '1.5', '1d', '86,400', '1e3']],
  ['QUERY_MAX_DEPTH', ['-1', '21', '1.5', 'deep', '1e1', '０']],
  ['QUERY_MAX_COMPLEXITY', ['0', '-1', '1000001', '1.5', '1,000', '1e3']],
  ['SOCKETS_PER_CLIENT', ['0', '-1', '1000001', '1.5', 'many']],
  ['SOCKET_MESSAGES_PER_SECOND', ['-1', '1000001', '1.5', '1/s']],
  ['SUBSCRIPTION_GROUPS_PER_CLIENT', ['0', '-1', '1000001', '1.5', 'many']],
  ['SUBSCRIPTION_GROUPS', ['0', '-1', '1000001', '1.5', '10,000']],
  ['BODY_LIMIT_BYTES', ['0', '1023', '67108865', '1MB']],
  ['CONNECTIONS_PER_CLIENT', ['-1', '1000001', '1.5', 'many']],
  ['MAINTENANCE', ['yes', 'true', '1']],
  ['INTROSPECTION', ['yes', 'true', '1']],
  ['EXPLORERS', ['yes', 'false', '0']],
  [
    'CORS_ORIGINS',
    ['example.com', 'https://a.example/', 'https://a.example,', 'https://a.example;https://b.example', 'null'],
  ],
  ['ALLOWED_HOSTS', ['*', 'http://a.example', 'a.example/', 'a b', 'a.example,', '::1', 'a@b', 'a:port', '.example']],
  ['METRICS_TOKEN', ['hunter2 hunter2', 'hünter2']],
  ['LOG_LEVEL', ['loud', '30']],
  ['DRAIN_MS', ['-1', '8001', '1s']],
  ['NODE_ENV', ['prod', 'Staging']],
]

for (const [name, values] of wrong) {
  test(`a wrong ${name} is refused with one line that names the variable and does not quote the value`, () => {
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
  })
}

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
