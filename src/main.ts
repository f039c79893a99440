import type { App } from './app.ts'
import { type Config, ConfigError, processEnvironment, readConfig, type Setting, settings } from './config.ts'
import { demoLogin } from './core/demo.ts'
import { AppError } from './core/errors.ts'
import { idOf } from './core/input.ts'
import { loginKeyOf } from './core/users/user.ts'

/** The command line. Returns the exit code; a server runs until it is told to stop. */
export async function main(args: readonly string[]): Promise<number> {
  if (args[0] === 'help' || args.includes('--help') || args.includes('-h')) {
    console.log(help())
    return 0
  }
  const line = args.length === 0 ? 'serve' : args.join(' ')
  const [name, command] = Object.entries(commands).find(([name]) => `${line} `.startsWith(`${name} `)) ?? []
  if (name === undefined || command === undefined) {
    return complain(`unknown command ${JSON.stringify(line)}; --help lists the known ones`)
  }
  const rest = args.slice(name.split(' ').length)
  if (rest.length !== command.takes.length) {
    return complain(`usage: ${[name, ...command.takes.map(word => `<${word}>`)].join(' ')}; --help lists the settings`)
  }
  let config: Config | undefined
  try {
    config = readConfig(processEnvironment())
    return await command.run(config, ...rest)
  } catch (error) {
    return complain(explain(error, config))
  }
}

function complain(line: string): number {
  console.error(`duet: ${line}`)
  return 1
}

interface Command {
  readonly summary: string
  /** Names of the arguments. */
  readonly takes: readonly string[]
  run(config: Config, ...args: string[]): Promise<number>
}

const commands: Readonly<Record<string, Command>> = {
  serve: { summary: 'start the service (the default)', takes: [], run: serve },
  migrate: { summary: "bring the database's schema up to date", takes: [], run: migrate },
  seed: { summary: 'fill an empty database with demo data', takes: [], run: seed },
  backup: { summary: 'copy an embedded database, also while it is served', takes: ['file'], run: backup },
  'keys generate': { summary: 'print a new key set for TOKEN_KEYS', takes: [], run: generateKeys },
  'users set-role': { summary: 'make a user a member or an admin', takes: ['email or id', 'role'], run: setRole },
}

// The program itself is loaded only when its settings are sound: what is wrong with them is told at once.
async function serve(config: Config): Promise<number> {
  const { startApp, systemClock, systemRandomness } = await import('./app.ts')
  const { createLogger, standardOutput } = await import('./server/logging.ts')
  const { lastResort } = await import('./server/last-resort.ts')
  const output = standardOutput()
  const logger = createLogger(config.logLevel, output)
  let app: App | undefined
  const exit = (code: number) => {
    try {
      output.flushSync()
    } finally {
      process.exit(code)
    }
  }
  const stop = async () => app?.stopAtOnce()
  const fail = lastResort({ logger, stop, exit, patienceMs: 10_000 })
  process.on('uncaughtException', fail)
  process.on('unhandledRejection', fail)
  process.on('SIGUSR2', () => app?.toggleMaintenance()) // from the start: unheard, it would end the process
  process.stdout.on('error', () => {}) // the reader went away; serving goes on
  app = await startApp(config, { logger, clock: systemClock, randomness: systemRandomness })
  // Listeners stay, so that a second signal while shutting down changes nothing.
  const told = new Promise(resolve => {
    process.on('SIGTERM', resolve)
    process.on('SIGINT', resolve)
  })
  if (!config.production) process.stdout.write(greeting(app.url, app.demoLoginWorks))
  await told
  logger.info('stopping')
  await app[Symbol.asyncDispose]()
  logger.info('stopped')
  output.flushSync()
  return 0
}

async function migrate({ database }: Config): Promise<number> {
  const { migrateDatabase } = await import('./app.ts')
  const applied = await migrateDatabase(database)
  for (const { version, name } of applied) console.log(`applied ${version} ${name}`)
  console.log('The schema is up to date.')
  return 0
}

async function seed(config: Config): Promise<number> {
  const app = await import('./app.ts')
  if ((await app.seed(config)) === 'not empty') return complain('the database is not empty; it was left as it is')
  console.log('The demo data is there.')
  return 0
}

async function backup(config: Config, file: string): Promise<number> {
  const app = await import('./app.ts')
  try {
    app.backup(config, file)
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return complain(`${file} exists already; it was left as it is`)
    if (syscall === 'open') return complain(`${file} cannot be written: ${code}`)
    throw error
  }
  console.log(`The database is copied to ${file}.`)
  return 0
}

async function generateKeys(): Promise<number> {
  const { generateKeySet } = await import('./security/keys.ts')
  process.stdout.write(await generateKeySet())
  return 0
}

async function setRole(config: Config, user: string, role: string): Promise<number> {
  if (role !== 'member' && role !== 'admin') return complain('a role is member or admin')
  const { withStore, systemRandomness } = await import('./app.ts')
  const id = idOf(user)
  const who = id === undefined ? { loginKey: loginKeyOf(user) } : { id }
  const outcome = await withStore(config, ({ users }) => users.setRole(who, role, systemRandomness.id()))
  if (outcome === 'absent') {
    return complain(
      id === undefined
        ? 'nobody can log in with this e-mail; a user without a password is named by the id'
        : 'there is no such user',
    )
  }
  console.log(`Done. The user is now ${role}, and has to log in again.`)
  return 0
}

function greeting(url: string, withDemoData: boolean): string {
  const login = JSON.stringify(demoLogin)
  return `
  Duet is ready.

    GraphQL         ${url}/graphql      (open it in a browser to try it)
    HTTP interface  ${url}/users        (also under ${url}/api)
    Docs            ${url}/docs         (as data: ${url}/openapi.json)
    Health          ${url}/health/ready
${
  withDemoData
    ? `
  There is demo data to play with. Log in as ${demoLogin.email}, password ${demoLogin.password}:

    curl -s ${url}/tokens -H 'Content-Type: application/json' -d '${login}'
`
    : ''
}
  Press Ctrl-C to stop.

`
}

function help(): string {
  const rows = (entries: [string, string][]) => {
    const width = Math.max(...entries.map(([name]) => name.length))
    return entries.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`).join('\n')
  }
  return `Usage: npm run duet -- <command>

Commands
${rows(Object.entries(commands).map(([name, { takes, summary }]) => [[name, ...takes.map(word => `<${word}>`)].join(' '), summary]))}

Environment variables (a .env file is read too)
${rows(
  Object.entries<Setting>(settings).map(([name, { fallback, meaning, default: told }]) => [
    name,
    `${meaning} (default ${told ?? (fallback || 'none')})`,
  ]),
)}`
}

/** One line for the operator, which begins with the setting to look at. */
function explain(error: unknown, config: Config | undefined): string {
  if (error instanceof ConfigError) return error.message
  const { code = '', syscall, hostname } = error as NodeJS.ErrnoException & { hostname?: string }
  if (syscall === 'listen') return listenFailures[code] ?? `HOST, PORT: ${code}`
  if (syscall === 'getaddrinfo' && hostname === config?.host) return listenFailures.EADDRNOTAVAIL
  // Beside listening, a start is the opening of the database and nothing else.
  return `DATABASE_URL: ${databaseFailures[code] ?? reasonOf(error)}`
}

const listenFailures: Readonly<Record<string, string>> & { readonly EADDRNOTAVAIL: string } = {
  EADDRINUSE: 'PORT: another program already listens on this address',
  EADDRNOTAVAIL: 'HOST: is not an address of this machine',
  EACCES: 'PORT: permission denied',
}

const databaseFailures: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'no database listens at this address',
  ENOTFOUND: 'the host is not known',
  EAI_AGAIN: 'the host cannot be looked up',
  ETIMEDOUT: 'the host does not answer',
}

// An AppError's own sentence is for callers; a failure on several addresses of one host has a code but no sentence.
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const told = error instanceof AppError && error.cause instanceof Error ? error.cause : error
  return told.message.replaceAll(/\s+/g, ' ') || ('code' in told ? String(told.code) : told.name)
}
