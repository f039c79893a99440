import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { generateKeySet } from '../src/security/keys.ts'
import { freePort } from '../test/support/ports.ts'
import { PostgresServer, postgresMissing } from '../test/support/postgres.ts'
import { isInstalled, Nginx, nginxMissing } from './nginx.ts'

/**
 * `npm run cluster`: two instances on one PostgreSQL, as in production, with Redis and nginx if they are installed. All
 * of it runs on this machine only, and is deleted at the end.
 */
async function runCluster(): Promise<void> {
  const missing = postgresMissing()
  if (missing !== undefined) throw new Error(`a cluster needs PostgreSQL: ${missing}`)
  const told = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => told.abort())
  await using parts = new AsyncDisposableStack()
  const folder = parts.adopt(mkdtempSync(join(tmpdir(), 'duet-cluster-')), path => rmSync(path, { recursive: true }))
  chmodSync(folder, 0o711) // PostgreSQL and nginx run as other users
  process.env.TMPDIR = folder
  const postgres = parts.use(await PostgresServer.start())
  const redisUrl = await startRedis(parts)
  const keys = join(folder, 'keys.json')
  writeFileSync(keys, await generateKeySet(), { mode: 0o600 })
  const settings = {
    DATABASE_URL: postgres.url,
    TOKEN_KEYS: keys,
    TRUST_PROXY: '127.0.0.1',
    DEMO_DATA: 'true',
    LOG_LEVEL: 'warn',
    ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
  }
  const ports = [await freePort(), await freePort()] as const
  for (const port of ports) startInstance(parts, port, settings, told.signal)
  for (const port of ports) await untilReady(port)
  const nginx = await startNginx(parts, folder, ports)

  if (nginx !== undefined) console.log(`Cluster: ${nginx.url} (its certificate is self-signed: curl -k)`)
  for (const port of ports) console.log(`Instance: http://127.0.0.1:${port}`)
  console.log('Press Ctrl-C to stop. The data is thrown away then.')
  if (!told.signal.aborted) await once(told.signal, 'abort')
  console.log('Stopping.')
}

async function startRedis(parts: AsyncDisposableStack): Promise<string | undefined> {
  const program = ['valkey-server', 'redis-server'].find(name => isInstalled(name, '--version'))
  if (program === undefined) {
    console.log('Neither valkey-server nor redis-server is installed: each instance has limits of its own.')
    return undefined
  }
  const port = await freePort()
  const args = ['--bind', '127.0.0.1', '--port', String(port), '--save', '', '--appendonly', 'no']
  adopt(parts, spawn(program, args, { stdio: 'ignore' }))
  return `redis://127.0.0.1:${port}`
}

async function startNginx(
  parts: AsyncDisposableStack,
  folder: string,
  ports: readonly [number, number],
): Promise<Nginx | undefined> {
  const missing = nginxMissing()
  if (missing !== undefined) {
    console.log(`${missing}: there is no common address, use those of the instances.`)
    return undefined
  }
  const own = join(folder, 'nginx')
  mkdirSync(own, { mode: 0o755 })
  return parts.use(await Nginx.start(own, ports))
}

function startInstance(
  parts: AsyncDisposableStack,
  port: number,
  settings: Readonly<Record<string, string>>,
  end: AbortSignal,
): void {
  const program = join(import.meta.dirname, '..', 'bin', 'duet.mjs')
  const child = spawn(process.execPath, [program, 'serve'], {
    env: { ...process.env, ...settings, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  adopt(parts, child)
  // Prints only log lines, because the greeting is for a single instance. At the end all instances lose their database,
  // so nothing more is printed.
  createInterface({ input: child.stdout }).on('line', line => {
    if (line.startsWith('{') && !end.aborted) console.log(`${port} ${line}`)
  })
}

/** Ends the process together with the other parts. Ctrl-C in a terminal also sends a signal to it, which does no harm. */
function adopt(parts: AsyncDisposableStack, child: ChildProcess): void {
  const gone = once(child, 'exit')
  parts.defer(async () => {
    child.kill('SIGTERM')
    await gone
  })
}

async function untilReady(port: number): Promise<void> {
  for (let tries = 0; ; tries++) {
    const answer = await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => undefined)
    if (answer?.status === 200) return
    if (tries > 600) throw new Error(`the instance at port ${port} is not ready after a minute`)
    await delay(100)
  }
}

try {
  await runCluster()
} catch (error) {
  console.error(`cluster: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}
