import { migrateDatabase, startApp, systemClock, systemRandomness } from './app.ts'
import { type Config, processEnvironment, readConfig, settings } from './config.ts'
import { createLogger, standardOutput } from './server/logging.ts'

/** The command line. Returns the exit code; a server runs until it is told to stop. */
export async function main(args: readonly string[]): Promise<number> {
  const [command = 'serve', ...rest] = args
  const run = commands[command]?.run
  if (run === undefined || rest.length > 0 || command === '--help') {
    console.log(help())
    return command === '--help' || command === 'help' ? 0 : 1
  }
  try {
    return await run(readConfig(processEnvironment()))
  } catch (error) {
    console.error(`duet: ${explain(error)}`)
    return 1
  }
}

const commands: Readonly<Record<string, { summary: string; run: (config: Config) => Promise<number> }>> = {
  serve: { summary: 'start the service (the default)', run: serve },
  migrate: { summary: "bring the database's schema up to date", run: migrate },
}

async function serve(config: Config): Promise<number> {
  const output = standardOutput()
  const logger = createLogger(config.logLevel, output)
  const app = await startApp(config, { logger, clock: systemClock, randomness: systemRandomness })
  process.on('SIGUSR2', () => app.toggleMaintenance())
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
  Object.entries(settings).map(([name, { fallback, meaning }]) => [
    name,
    fallback === '' ? meaning : `${meaning} (default ${fallback})`,
  ]),
)}`
}

// One line for the operator. Node's own errors name what is wrong better by their code than by their text.
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') return 'PORT: another program already listens on this address'
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return 'HOST: is not an address of this machine'
  if (code === 'EACCES') return 'PORT or DATABASE_URL: permission denied'
  return error.message
}
