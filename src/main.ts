import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import type { Options } from './commands/users.ts'
import { type Config, processEnvironment, readConfig, type Setting, settings } from './config.ts'
import { AppError } from './core/errors.ts'

/** Runs a command line and returns the exit code. `serve` ends the process itself, after the server has stopped. */
export async function main(args: readonly string[]): Promise<number> {
  if (args[0] === 'help' || args.includes('--help') || args.includes('-h')) {
    console.log(help())
    return 0
  }
  const line = args.length === 0 ? 'serve' : args.join(' ')
  // The name of a command may have two words.
  const [name, command] = Object.entries(commands).find(([name]) => `${line} `.startsWith(`${name} `)) ?? []
  if (name === undefined || command === undefined) {
    return complain(`unknown command ${JSON.stringify(line)}; --help lists the known ones`)
  }
  const given = parse(command, args.slice(name.split(' ').length))
  if (given === undefined) return complain(`usage: ${usage(name, command)}; --help lists the settings`)
  let config: Config | undefined
  try {
    config = readConfig(processEnvironment())
    await command.run(config, given.words, given.options)
    return 0
  } catch (error) {
    return complain(explain(error, config))
  }
}

/** Prints a one-line error for the operator. Returns the exit code. */
function complain(line: string): number {
  console.error(`duet: ${line}`)
  return 1
}

interface Command {
  readonly summary: string
  /** As `--help` shows them: in brackets if they are optional. */
  readonly takes?: readonly string[]
  /** Likewise, with `<…>` if they have a value. */
  readonly options?: readonly string[]
  run(config: Config, words: readonly string[], options: Options): Promise<void>
}

// Commands are imported only after the settings are checked, so that an invalid setting is reported at once.
const commands: Readonly<Record<string, Command>> = {
  serve: {
    summary: 'start the service (the default)',
    run: async config => (await import('./commands/serve.ts')).serve(config),
  },
  migrate: {
    summary: "bring the database's schema up to date",
    run: async config => (await import('./commands/database.ts')).migrate(config),
  },
  repair: {
    summary: 'find and mend what an earlier version has left wrong, also while it is served',
    run: async config => (await import('./commands/database.ts')).repair(config),
  },
  seed: {
    summary: 'fill an empty database with demo data',
    run: async config => (await import('./commands/database.ts')).seed(config),
  },
  backup: {
    summary: 'copy the database to a file or to BACKUP_DIR, also while it is served; PostgreSQL needs pg_dump',
    takes: ['[<file>]'],
    run: async (config, [file]) => (await import('./commands/backup.ts')).backup(config, file),
  },
  move: {
    summary: 'copy an embedded database that is not served to an empty PostgreSQL, and compare them',
    options: ['--to <address>'],
    run: async (config, _, options) => (await import('./commands/move.ts')).move(config, options),
  },
  'keys generate': {
    summary: 'print a new key set for TOKEN_KEYS',
    run: async () => void process.stdout.write(await (await import('./security/keys.ts')).generateKeySet()),
  },
  'users create': {
    summary: 'create a user who can log in; without --password-stdin the password is generated and printed',
    options: ['--email <email>', '[--name <name>]', '[--role <role>]', '[--password-stdin]'],
    run: async (config, _, options) => (await import('./commands/users.ts')).createUser(config, options),
  },
  'users list': {
    summary: 'list all users: id, role, whether they can log in, e-mail and name',
    options: ['[--role <role>]'],
    run: async (config, _, options) => (await import('./commands/users.ts')).listUsers(config, options),
  },
  'users set-role': {
    summary: 'make a user a member or an admin',
    takes: ['<email or id>', '<role>'],
    run: async (config, [user = '', role = '']) => (await import('./commands/users.ts')).setRole(config, user, role),
  },
}

function usage(name: string, { takes = [], options = [] }: Command): string {
  return [name, ...takes, ...options].join(' ')
}

/** The words and options after the name of a command, or `undefined` if it does not take them. */
function parse({ takes = [], options = [] }: Command, args: readonly string[]) {
  const config: ParseArgsOptionsConfig = {}
  for (const option of options) config[nameOf(option)] = { type: option.includes('<') ? 'string' : 'boolean' }
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: config, allowPositionals: true })
    const isComplete = options.every(option => option.startsWith('[') || nameOf(option) in values)
    const least = takes.filter(word => !word.startsWith('[')).length
    return isComplete && positionals.length >= least && positionals.length <= takes.length
      ? { words: positionals, options: values as Options }
      : undefined
  } catch {
    return undefined
  }
}

function nameOf(option: string): string {
  return /--([a-z-]+)/.exec(option)?.[1] ?? ''
}

function help(): string {
  const rows = (entries: [string, string][]) => {
    const width = Math.max(...entries.map(([name]) => name.length))
    return entries.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`).join('\n')
  }
  return `Usage: npm run duet -- <command>

Commands
${rows(Object.entries(commands).map(([name, command]) => [usage(name, command), command.summary]))}

Environment variables (a .env file is read too)
${rows(
  Object.entries<Setting>(settings).map(([name, { fallback, meaning, default: described }]) => [
    name,
    `${meaning} (default ${described ?? (fallback || 'none')})`,
  ]),
)}`
}

/** A one-line message for the operator. It starts with the name of the setting to check. */
function explain(error: unknown, config: Config | undefined): string {
  if (error instanceof Error && error.name === 'ConfigError') return error.message // also of another thread
  if (error instanceof AppError && error.cause === undefined) return error.message // a command's refusal
  const { code = '', syscall, hostname } = error as NodeJS.ErrnoException & { hostname?: string }
  if (syscall === 'listen') return listenFailures[code] ?? `HOST, PORT: ${code}`
  if (syscall === 'getaddrinfo' && hostname === config?.host) return listenFailures.EADDRNOTAVAIL
  // Apart from listening, a start can only fail while opening the database.
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

// The message of an AppError is for clients, so its cause is printed. If a connection fails on several addresses of one
// host, the error has a code but no message.
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const reason = error instanceof AppError && error.cause instanceof Error ? error.cause : error
  return reason.message.replaceAll(/\s+/g, ' ') || ('code' in reason ? String(reason.code) : reason.name)
}
