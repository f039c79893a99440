import type { App } from './app.ts'
import { type Config, ConfigError, processEnvironment, readConfig, settings } from './config.ts'
import { AppError } from './core/errors.ts'

/** The command line. Returns the exit code; a server runs until it is told to stop. */
export async function main(args: readonly string[]): Promise<number> {
  const [command = 'serve', ...rest] = args
  if (command === 'help' || args.includes('--help') || args.includes('-h')) {
    console.log(help())
    return 0
  }
  const run = Object.hasOwn(commands, command) ? commands[command]?.run : undefined
  if (run === undefined) return complain(`unknown command ${JSON.stringify(command)}; --help lists the known ones`)
  if (rest.length > 0) return complain(`${command} takes no arguments; --help lists the settings`)
  let config: Config | undefined
  try {
    config = readConfig(processEnvironment())
    return await run(config)
  } catch (error) {
    return complain(explain(error, config))
  }
}

function complain(line: string): number {
  console.error(`duet: ${line}`)
  return 1
}

const commands: Readonly<Record<string, { summary: string; run: (config: Config) => Promise<number> }>> = {
  serve: { summary: 'start the service (the default)', run: serve },
  migrate: { summary: "bring the database's schema up to date", run: migrate },
}

// The program itself is loaded only when its settings are sound: what is wrong with them is told at once.
async function serve(config: Config): Promise<number> {
  const { startApp, systemClock, systemRandomness } = await import('./app.ts')
  const { createLogger, standardOutput } = await import('./server/logging.ts')
  const output = standardOutput()
  const logger = createLogger(config.logLevel, output)
  let app: App | undefined
  process.on('SIGUSR2', () => app?.toggleMaintenance()) // from the start: unheard, it would end the process
  process.stdout.on('error', () => {}) // the reader went away; serving goes on
  app = await startApp(config, { logger, clock: systemClock, randomness: systemRandomness })
  // Listeners stay, so that a second signal while shutting down changes nothing.
  const told = new Promise(resolve => {
    process.on('SIGTERM', resolve)
    process.on('SIGINT', resolve)
  })
  process.stdout.write(greeting(app.url))
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

function greeting(url: string): string {
  return `
  Duet is ready.

    Health   ${url}/health/ready
    Metrics  ${url}/metrics

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
${rows(Object.entries(commands).map(([name, { summary }]) => [name, summary]))}

Environment variables (a .env file is read too)
${rows(
  Object.entries(settings).map(([name, { fallback, meaning }]) => [name, `${meaning} (default ${fallback || 'none'})`]),
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
