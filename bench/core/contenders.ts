import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Contender } from './model.ts'
import * as names from './names.ts'
import { BenchServer } from './server.ts'

const bench = join(import.meta.dirname, '..')
/** What `npm start` runs. */
export const duetProgram = ['--max-semi-space-size=8', join(bench, '..', 'bin', 'duet.mjs'), 'serve'] as const
export const peer = (file: string) => join(bench, 'peers', file)

const peers: Readonly<Record<string, string>> = {
  [names.apollo]: 'apollo.mjs',
  [names.yoga]: 'yoga.mjs',
  [names.mercurius]: 'mercurius.mjs',
  [names.express]: 'express.mjs',
  [names.fastify]: 'fastify.mjs',
  [names.hono]: 'hono.mjs',
  [names.bare]: 'bare.mjs',
}

/** As `npm start` sets them, the first to the number of threads. */
export const malloc = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_MMAP_THRESHOLD_: '4194304',
  MALLOC_TRIM_THRESHOLD_: '4194304',
} as const

/** Limits of Duet that the others have no equal of are off: those of a client's requests and connections, and of time. */
export const duetSettings = {
  // In production it does not print its address, which the benchmark waits for. This changes nothing that is measured.
  NODE_ENV: 'development',
  PORT: '0',
  LOG_LEVEL: 'warn',
  RATE_LIMIT_MAX: '0',
  CONNECTIONS_PER_CLIENT: '0',
  SOCKETS_PER_CLIENT: '100000',
  DATABASE_TIMEOUT_MS: '60000',
  DEMO_DATA: 'false',
  ACCESS_POLICY: 'open',
  THREADS: '1',
  ...malloc,
} as const

/** Settings of the others. */
export const peerSettings = { NODE_ENV: 'production', GRAPHILE_ENV: 'production' } as const

/** Names of files are not used again: a killed server leaves its write-ahead log behind. */
let copies = 0

/** Starts servers, each on a copy of the same SQLite file. Those that cannot run here are left out with a line. */
export class Starter {
  readonly #folder: string
  readonly #keys: string
  readonly #stack: AsyncDisposableStack

  constructor(folder: string, keys: string, stack: AsyncDisposableStack) {
    this.#folder = folder
    this.#keys = keys
    this.#stack = stack
  }

  /** `before`: a program that starts each of them. `node`: options for those that run in Node. */
  async start(
    wanted: readonly string[],
    template: string,
    { before = [] as readonly string[], node = [] as readonly string[] } = {},
  ): Promise<ReadonlyMap<string, Contender>> {
    const starts = await Promise.allSettled(
      wanted.map(async name => {
        const path = join(this.#folder, `copy-${++copies}.db`)
        const command = this.#commandOf(name, path, node)
        if (command === undefined) return []
        copyFileSync(template, path)
        const shared = { TOKEN_KEYS: this.#keys, DATABASE_URL: `sqlite:${path}` }
        const settings = name.startsWith(names.duet) ? duetSettings : peerSettings
        const server = await BenchServer.run([...before, ...command], { ...shared, ...settings })
        return [{ name, server: this.#stack.use(server) }]
      }),
    )
    // Those that did start are in the stack by now, and stop with it.
    const started = starts.flatMap(each => {
      if (each.status === 'rejected') throw each.reason
      return each.value
    })
    return new Map(started.map(contender => [contender.name, contender]))
  }

  #commandOf(name: string, path: string, options: readonly string[]): readonly string[] | undefined {
    if (name.startsWith(names.duet)) return [process.execPath, ...options, ...duetProgram]
    if (name === names.go) {
      const program = goProgram(this.#folder)
      return program === undefined ? undefined : [program, path]
    }
    const file = peers[name]
    if (file === undefined) throw new Error(`No server is called ${name}`)
    if (name !== names.bare && !areInstalled())
      return skip(name, 'its packages are missing: npm --prefix bench install')
    return [process.execPath, ...options, peer(file), path]
  }
}

const skipped = new Set<string>()

/** What was left out, with the reason. */
export function skip(what: string, why: string): undefined {
  const line = `${what} is left out: ${why}`
  if (!skipped.has(line)) console.log(line)
  skipped.add(line)
  return undefined
}

export function skippedLines(): readonly string[] {
  return [...skipped]
}

export function areInstalled(): boolean {
  return existsSync(join(bench, 'node_modules', 'mercurius'))
}

/** Builds the server in Go from Debian's packages. */
function goProgram(folder: string): string | undefined {
  const program = join(folder, 'go-server')
  if (existsSync(program)) return program
  const cache = join(bench, 'node_modules', '.go')
  mkdirSync(cache, { recursive: true })
  const env = { ...process.env, GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOCACHE: cache, GOFLAGS: '' }
  const options = { cwd: peer('go'), env, encoding: 'utf8' } as const
  const { error, status, stderr } = spawnSync('go', ['build', '-tags', 'libsqlite3', '-o', program, '.'], options)
  if (error === undefined && status === 0) return program
  const packages =
    'golang-go golang-github-graph-gophers-graphql-go-dev golang-github-mattn-go-sqlite3-dev libsqlite3-dev gcc'
  const reason = error === undefined ? `it does not build (${stderr.split('\n')[0]})` : 'there is no Go'
  return skip(names.go, `${reason}. Debian's packages: ${packages}`)
}
