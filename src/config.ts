import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'

/** All settings, read once, checked and frozen. Nothing else looks at the environment. */
export interface Config {
  readonly production: boolean
  readonly host: string
  readonly port: number
  readonly database: DatabaseConfig
  readonly bodyLimitBytes: number
  readonly maintenance: boolean
  readonly corsOrigins: readonly string[]
  readonly metricsToken: string | undefined
  readonly logLevel: LogLevel
  readonly drainMs: number
}

export type DatabaseConfig =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly poolMax: number }

export type LogLevel = (typeof logLevels)[number]

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** A setting that cannot be used. The message is one line that names the variable, and never quotes a secret. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

export type Environment = Readonly<Record<string, string | undefined>>

/** The process's environment, completed by a `.env` file in the current folder. */
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
  return Object.freeze({
    production: oneOf('NODE_ENV', read('NODE_ENV'), ['development', 'production', 'test']) === 'production',
    // Fastify would serve the second address of `localhost` by a second server, without our answers to broken requests.
    host: read('HOST') === 'localhost' ? '127.0.0.1' : read('HOST'),
    port: integer('PORT', read('PORT'), 0, 65_535),
    database: database(read('DATABASE_URL'), integer('DATABASE_POOL_MAX', read('DATABASE_POOL_MAX'), 1, 1000)),
    bodyLimitBytes: integer('BODY_LIMIT_BYTES', read('BODY_LIMIT_BYTES'), 1024, 64 * 1024 * 1024),
    maintenance: oneOf('MAINTENANCE', read('MAINTENANCE'), ['off', 'on']) === 'on',
    corsOrigins: origins(read('CORS_ORIGINS')),
    metricsToken: token('METRICS_TOKEN', read('METRICS_TOKEN')),
    logLevel: oneOf('LOG_LEVEL', read('LOG_LEVEL'), logLevels),
    drainMs: integer('DRAIN_MS', read('DRAIN_MS'), 0, 8_000),
  })
}

/** What `duet --help` lists. A fallback is what an absent or empty variable means. */
export const settings = {
  HOST: { fallback: '127.0.0.1', meaning: 'address to listen on' },
  PORT: { fallback: '4000', meaning: 'port to listen on; 0 picks a free one' },
  DATABASE_URL: {
    fallback: 'sqlite:data/duet.db',
    meaning: 'sqlite:<path>, sqlite::memory: (a temporary file) or postgres://…',
  },
  DATABASE_POOL_MAX: { fallback: '10', meaning: 'PostgreSQL connections per instance' },
  BODY_LIMIT_BYTES: { fallback: '1048576', meaning: 'largest request body' },
  MAINTENANCE: { fallback: 'off', meaning: 'on: every request but health answers 503; SIGUSR2 toggles it' },
  CORS_ORIGINS: { fallback: '*', meaning: 'origins that browsers may call from, separated by commas' },
  METRICS_TOKEN: { fallback: '', meaning: 'bearer token for /metrics; in production /metrics is off without it' },
  LOG_LEVEL: { fallback: 'info', meaning: logLevels.join(', ') },
  DRAIN_MS: { fallback: '1000', meaning: 'milliseconds of further serving after SIGTERM, while clients turn away' },
  NODE_ENV: { fallback: 'development', meaning: 'development, test or production: safe defaults for a public service' },
} as const

type SettingName = keyof typeof settings

function integer(name: SettingName, value: string, least: number, most: number): number {
  const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
  if (number >= least && number <= most) return number
  throw new ConfigError(`${name}: must be a whole number from ${least} to ${most}`)
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

function database(value: string, poolMax: number): DatabaseConfig {
  if (/^postgres(ql)?:\/\//.test(value)) {
    if (!URL.canParse(value)) throw new ConfigError('DATABASE_URL: is not a valid postgres:// address')
    return Object.freeze({ kind: 'postgres', url: value, poolMax })
  }
  const path = /^sqlite:(.+)$/.exec(value)?.[1]
  if (path !== undefined) return Object.freeze({ kind: 'sqlite', path: path.replace(/^\/\/(?=\/)/, '') })
  throw new ConfigError('DATABASE_URL: must be sqlite:<path>, sqlite::memory: or postgres://…')
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
