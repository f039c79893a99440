import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { ConfigError } from '../core/errors.ts'
import type { SettingName } from './table.ts'

// The values of settings, from the texts of the environment. Each function throws an error that names the variable.

export type DatabaseConfig =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly poolMax: number; readonly pooler: boolean }

export function integer(name: SettingName, value: string, least: number, most: number): number {
  const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
  if (number >= least && number <= most) return number
  throw new ConfigError(`${name}: must be a whole number from ${least} to ${most}`)
}

/** Threads can share a port only where the system distributes its connections among them. */
const canShare = process.platform === 'linux'
const usualThreads = canShare ? Math.min(8, Math.max(1, availableParallelism() - 1)) : 1

export function threads(value: string): number {
  const count = value === '' ? usualThreads : integer('THREADS', value, 1, 8)
  if (count === 1 || canShare) return count
  throw new ConfigError('THREADS: must be 1 on this system; more than one needs Linux')
}

export function choice<Choice extends string>(name: SettingName, value: string, choices: readonly Choice[]): Choice {
  const choice = choices.find(candidate => candidate === value.toLowerCase())
  if (choice !== undefined) return choice
  throw new ConfigError(`${name}: must be one of ${choices.join(', ')}`)
}

export function database(value: string, poolMax: number, pooler: boolean): DatabaseConfig {
  if (/^postgres(ql)?:\/\//.test(value)) {
    if (!URL.canParse(value)) throw new ConfigError('DATABASE_URL: is not a valid postgres:// address')
    return Object.freeze({ kind: 'postgres', url: value, poolMax, pooler })
  }
  const path = /^sqlite:(.+)$/.exec(value)?.[1]
  if (path !== undefined) return Object.freeze({ kind: 'sqlite', path: path.replace(/^\/\/(?=\/)/, '') })
  throw new ConfigError('DATABASE_URL: must be sqlite:<path>, sqlite::memory: or postgres://…')
}

export function redis(value: string): string | undefined {
  if (value === '') return undefined
  try {
    const { protocol, hostname, port, username, password, pathname, search, hash, href } = new URL(value)
    decodeURIComponent(username + password)
    const isPlain = port !== '0' && /^\/?\d{0,6}$/.test(pathname) && search + hash === ''
    if (/^rediss?:$/.test(protocol) && hostname !== '' && isPlain) return href
  } catch {
    // The error below does not quote the address, which holds a password.
  }
  throw new ConfigError('REDIS_URL: must be redis://… or rediss://…, with host[:port][/database] and no parameters')
}

export type MailConfig =
  | { readonly kind: 'smtp'; readonly url: string; readonly from: string; readonly publicUrl: string }
  | { readonly kind: 'log'; readonly from: string | undefined; readonly publicUrl: string | undefined }

/** How mails are sent. Without a server they are written to the log on a developer's own machine. */
export function mail(
  url: string,
  from: string,
  publicUrl: string,
  { isLocal, isOpen }: Readonly<Record<'isLocal' | 'isOpen', boolean>>,
): MailConfig | undefined {
  if (publicUrl !== '' && !webAddress.test(publicUrl))
    throw new ConfigError('PUBLIC_URL: must be an http(s) address such as https://duet.example.com, without a query')
  if (from !== '' && !sender.test(from))
    throw new ConfigError('MAIL_FROM: must be an e-mail address, or Name <address>')
  const address = publicUrl.replace(/\/+$/, '')
  const log = { kind: 'log', from: from || undefined, publicUrl: address || undefined } as const
  if (url === '') return isLocal ? Object.freeze(log) : undefined
  // The errors do not quote the address, which holds a password.
  if (!/^smtps?:\/\//.test(url) || !URL.canParse(url) || new URL(url).hostname === '')
    throw new ConfigError('SMTP_URL: must be smtp://… or smtps://…, with user:password@ if the server needs them')
  // A stranger would change the e-mail of an admin, and get the link.
  if (isOpen && !isLocal)
    throw new ConfigError('SMTP_URL: needs ACCESS_POLICY=enforced here, because under open anyone may change e-mails')
  if (from === '') throw new ConfigError('MAIL_FROM: is needed with SMTP_URL; it is the sender of mails')
  if (address === '') throw new ConfigError('PUBLIC_URL: is needed with SMTP_URL; links in mails lead to it')
  return Object.freeze({ kind: 'smtp', url, from, publicUrl: address })
}

const webAddress = /^https?:\/\/[\w.:[\]-]+(?:\/[\w.~-]+)*\/?$/
const sender = /^(?:[^<>\p{Cc}]*<[^\s<>@,;\p{Cc}]+@[^\s<>@,;\p{Cc}]+>|[^\s<>@,;\p{Cc}]+@[^\s<>@,;\p{Cc}]+)$/u

export function currency(code: string): string | undefined {
  if (code === '' || Intl.supportedValuesOf('currency').includes(code)) return code || undefined
  throw new ConfigError('CURRENCY: must be an ISO code such as EUR')
}

export function paths(value: string): readonly string[] {
  return listOf(value, path => /^\/[^\s?#]*$/.test(path), 'RATE_LIMIT_PATHS: must be paths such as /api/')
}

export function proxies(value: string): readonly string[] {
  const isRange = (range: string) => {
    const [address = '', prefix, ...rest] = range.split('/')
    const family = isIP(address)
    const longest = family === 4 ? 32 : 128
    const isValidPrefix = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= longest)
    return family !== 0 && isValidPrefix && rest.length === 0
  }
  return listOf(value, isRange, 'TRUST_PROXY: must be addresses or CIDR ranges such as 10.0.0.0/8')
}

export function origins(value: string): readonly string[] {
  const isOrigin = (origin: string) =>
    origin === '*' || origin === 'loopback' || (URL.canParse(origin) && new URL(origin).origin === origin)
  return listOf(value, isOrigin, 'CORS_ORIGINS: must be *, loopback or origins such as https://app.example.com')
}

export function hosts(value: string): readonly string[] {
  const isHost = (host: string) => /^(?:[a-z\d](?:[a-z\d._-]*[a-z\d])?|\[[\da-f:.]+\])(?::\d{1,5})?$/.test(host)
  return listOf(value.toLowerCase(), isHost, 'ALLOWED_HOSTS: must be hosts such as duet.example.com or duet:4000')
}

/** OpenTelemetry appends the path of traces to the common address, and to the other one nothing. */
export function tracesEndpoint(read: (name: SettingName) => string): string | undefined {
  const [common, own] = [read('OTEL_EXPORTER_OTLP_ENDPOINT'), read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')]
  if (common + own === '') return undefined
  const name = own === '' ? 'OTEL_EXPORTER_OTLP_ENDPOINT' : 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'
  const address = own || `${common.replace(/\/$/, '')}/v1/traces`
  if (/^https?:\/\//.test(address) && URL.canParse(address)) return address
  throw new ConfigError(`${name}: must be an http(s) address`)
}

function listOf(value: string, isSound: (item: string) => boolean, complaint: string): readonly string[] {
  const list = value === '' ? [] : value.split(',').map(item => item.trim())
  if (list.every(isSound)) return Object.freeze(list)
  throw new ConfigError(`${complaint}, separated by commas`)
}
