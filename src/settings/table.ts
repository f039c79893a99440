export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** The settings that `duet --help` lists. */
export const settings = {
  HOST: { fallback: '127.0.0.1', meaning: 'address to listen on' },
  PORT: { fallback: '4000', meaning: 'port to listen on; 0 picks a free one' },
  THREADS: {
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
  BACKUP_DIR: {
    meaning: 'folder of the backups; /metrics tells the age of the newest one',
    default: '`duet backup` needs the name of a file',
  },
  BACKUP_KEEP: { fallback: '14', meaning: 'backups that `duet backup` keeps in BACKUP_DIR' },
  REDIS_URL: {
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
  CORS_ORIGINS: {
    meaning: 'origins that browsers may call from, separated by commas; loopback: those of this machine; *: all',
    default: 'loopback if ACCESS_POLICY is open, else *',
  },
  ALLOWED_HOSTS: {
    meaning:
      'if ACCESS_POLICY is open: host names that requests may use beside loopback, separated by commas; else 421',
  },
  PUBLIC_DIR: { fallback: 'public', meaning: 'folder whose files are served at /app/, if it exists at the start' },
  METRICS_TOKEN: { meaning: 'bearer token for /metrics; in production or beyond loopback /metrics is off without it' },
  DEMO_DATA: {
    meaning: 'fill an empty database with demo data',
    default: 'true for SQLite on loopback outside production, else false',
  },
  ACCESS_POLICY: {
    meaning: 'open (anyone may do almost anything) or enforced (owners and admins)',
    default: 'open on loopback outside production, else enforced',
  },
  SIGN_UP: { fallback: 'open', meaning: 'who may create users: open (as the access policy says) or closed (admins)' },
  TOKEN_KEYS: {
    meaning: 'JWK Set of Ed25519 private keys, or the path of one; the first signs, all verify',
    default: 'a key file next to the SQLite file',
  },
  TOKEN_TTL_SECONDS: { fallback: '3600', meaning: 'lifetime of a token' },
  SESSION_TTL_SECONDS: { fallback: '2592000', meaning: 'how long a login lasts, with the tokens renewed from it' },
  SMTP_URL: {
    meaning: 'smtp://… or smtps://…: the server that sends the mails for forgotten passwords',
    default: 'on loopback outside production mails are written to the log, elsewhere there are none',
  },
  MAIL_FROM: { meaning: 'sender of mails: an address, or Name <address>; needed with SMTP_URL' },
  PUBLIC_URL: {
    meaning: 'address that browsers reach this service by, for links in mails; needed with SMTP_URL',
    default: 'the address that it listens on',
  },
  IDEMPOTENCY_TTL_SECONDS: { fallback: '86400', meaning: 'how long the keys of payments are kept' },
  CURRENCY: {
    meaning: 'ISO code, such as EUR, that the console shows amounts with',
    default: 'amounts are plain numbers',
  },
  CURRENCY_DIGITS: { fallback: '0', meaning: 'decimals of CURRENCY, from 0 to 4: with 2, 3607 is shown as 36.07' },
  LINK_PREFIX: { meaning: 'prefix of all addresses in Location and links' },
  RATE_LIMIT_MAX: { fallback: '100', meaning: 'requests per window and client; 0: no limit' },
  RATE_LIMIT_WINDOW_MS: { fallback: '60000', meaning: 'length of the window' },
  RATE_LIMIT_PATHS: {
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
    meaning: 'on or off: whether GraphQL clients may ask for the schema',
    default: 'off in production, else on',
  },
  EXPLORERS: {
    meaning: 'on or off: pages for browsers: /, /console, /docs and GraphiQL',
    default: 'off in production, else on',
  },
  TRUSTED_DOCUMENTS: {
    meaning: 'path of a JSON manifest: the only documents that GraphQL clients may run',
    default: 'any document',
  },
  TRUST_PROXY: { meaning: 'addresses or CIDR ranges of proxies whose X-Forwarded-For is trusted, separated by commas' },
  LOG_LEVEL: { fallback: 'info', meaning: logLevels.join(', ') },
  LOG_REQUESTS: {
    fallback: 'all',
    meaning: 'which answers get a line in the log: all, or errors (those from 500 on, and slow ones)',
  },
  SLOW_OPERATION_MS: {
    fallback: '200',
    meaning: 'milliseconds from which on a line is a warning that tells what was waited for; 0: never',
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    meaning: 'http(s) address of an OpenTelemetry collector, which traces are sent to, at /v1/traces',
    default: 'no traces',
  },
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: { meaning: 'the whole address for traces, instead of the one above' },
  OTEL_SERVICE_NAME: { fallback: 'duet', meaning: 'name of the service in traces' },
  OTEL_TRACES_SAMPLER: {
    fallback: 'parentbased_always_on',
    meaning: 'always_on, always_off or traceidratio, also with parentbased_ before it',
  },
  OTEL_TRACES_SAMPLER_ARG: { fallback: '1', meaning: 'part of the traces, from 0 to 1, for a sampler of a ratio' },
  DRAIN_MS: {
    fallback: '1000',
    meaning: 'milliseconds to keep serving after SIGTERM, while clients switch to other instances',
  },
  NODE_ENV: { fallback: 'development', meaning: 'development, test or production: safe defaults for a public service' },
} as const satisfies Readonly<Record<string, Setting>>

export interface Setting {
  /** The value if the variable is missing or empty. Default: an empty text. */
  readonly fallback?: string
  readonly meaning: string
  /** The text for the default in `--help`, if the default depends on other settings. */
  readonly default?: string
}

export type SettingName = keyof typeof settings
