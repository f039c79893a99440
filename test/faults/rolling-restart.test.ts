import assert from 'node:assert/strict'
import { chmodSync, readFileSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { isInstalled, Nginx, nginxMissing } from '../../deploy/nginx.ts'
import { Daemon } from '../support/daemon.ts'
import { postgres, type TestDatabase } from '../support/engines.ts'
import { temporaryFolder } from '../support/folder.ts'
import { inForm, onlyInFull } from '../support/form.ts'
import { askByFetch } from '../support/http.ts'
import { freePort } from '../support/ports.ts'
import { SocketClient } from '../support/sockets.ts'
import { assertSound, History } from './history.ts'
import { startServer } from './instance.ts'
import { attempt, runWorkers } from './payers.ts'

const payers = 8

/** Starts a proxy in front of two instances and returns its address. */
type Balance = (ports: readonly [number, number], parts: AsyncDisposableStack) => Promise<string>

/** It learns from failed connections only. */
const nginx: Balance = async (ports, parts) => {
  const folder = parts.use(temporaryFolder())
  chmodSync(folder.path, 0o711) // nginx runs as another user
  const { url, certificate } = parts.use(await Nginx.start(folder.path, ports))
  setDefaultCACertificates([...getCACertificates(), certificate])
  return url
}

/** It asks for readiness twice a second, so it needs a pause between two restarts. */
const caddy: Balance = async (ports, parts) => {
  const caddyfile = readFileSync(new URL('../../deploy/Caddyfile', import.meta.url), 'utf8')
  const files = (_: string, port: number) => ({
    Caddyfile: ports
      .reduce((text, instance, index) => text.replace(`duet-${index + 1}:4000`, `127.0.0.1:${instance}`), caddyfile)
      .replace('duet.example.com {', `{\n\tadmin off\n}\nhttp://127.0.0.1:${port} {`),
  })
  const args = () => ['run', '--config', 'Caddyfile', '--adapter', 'caddyfile']
  return `http://127.0.0.1:${parts.use(await Daemon.start({ program: 'caddy', files, args })).port}`
}

const settings = { DRAIN_MS: '1000', TRUST_PROXY: '127.0.0.1', THREADS: inForm('1', '2') }
const noCaddy = isInstalled('caddy', 'version') ? false : 'caddy is not installed'
/** `pauseMs`: from the moment when an instance is ready until the other one is restarted. */
const proxies = [
  { name: 'nginx with deploy/nginx.conf', skip: nginxMissing() ?? false, balance: nginx, pauseMs: 0 },
  { name: 'Caddy with deploy/Caddyfile', skip: onlyInFull || noCaddy, balance: caddy, pauseMs: 1_000 },
]

describe('F13: two instances that are restarted one after the other, under load, lose no request', {
  skip: postgres.skip,
}, () => {
  for (const proxy of proxies) it(`behind ${proxy.name}`, { skip: proxy.skip }, t => restartUnderLoad(t, proxy))
})

/** Also: sockets are closed with 1001, and processes exit with code 0 in time. */
async function restartUnderLoad(t: TestContext, proxy: Proxy): Promise<void> {
  await using parts = new AsyncDisposableStack()
  const database = parts.use(await postgres.create())
  const cluster = await startCluster(database, proxy, parts)
  const history = new History()
  const load = startLoad(cluster.url, history)
  const endMs: number[] = []
  for (let round = 0; round < inForm(1, 3); round++) {
    for (const which of [0, 1] as const) {
      await Promise.all([history.more(50), delay(proxy.pauseMs)])
      endMs.push(await cluster.restart(which))
    }
  }
  await history.more(50)
  await load.stop()
  const slowest = Math.max(...endMs)
  t.diagnostic(
    `${endMs.length} restarts: ${load.reads.length} reads; ${load.closings.length} sockets closed; ` +
      `the slowest instance ended after ${Math.round(slowest)} ms`,
  )
  const { unknowns, unavailable } = await assertSound(t, database, history)
  assert.deepEqual([unknowns, unavailable], [0, 0])
  assert.deepEqual([...new Set(load.reads)], [200])
  assert.ok(load.closings.length >= endMs.length)
  assert.deepEqual([...new Set(load.closings)], [1001])
  if (inForm(false, true)) assert.ok(slowest < 10_000, `${slowest} ms`) // only on an idle machine
}

type Proxy = (typeof proxies)[number]

/** Two instances with fixed ports, and a proxy in front of them. */
async function startCluster(database: TestDatabase, { balance }: Proxy, parts: AsyncDisposableStack) {
  const ports = [await freePort(), await freePort()] as const
  const startAt = async (port: number) => parts.use(await startServer(database, { PORT: String(port), ...settings }))
  const instances = await Promise.all(ports.map(startAt))
  const url = await balance(ports, parts)
  /** Stops an instance and starts another one in its place. Returns how long the first one took to end. */
  const restart = async (which: 0 | 1) => {
    const signalled = performance.now()
    await instances[which]?.stop()
    const endMs = performance.now() - signalled
    instances[which] = await startAt(ports[which])
    return endMs
  }
  return { url, restart }
}

/** Clients with keep-alive connections, and sockets that are reopened when the server closes them. */
function startLoad(url: string, history: History) {
  const reads: (number | undefined)[] = []
  /** The close codes of the sockets; 0 if a socket could not be opened. */
  const closings: number[] = []
  const sockets = new Set<SocketClient>()
  let going = true
  const paying = runWorkers(payers, async () => {
    while (going) {
      await attempt(history, url, history.intend())
      reads.push((await askByFetch(`${url}/users`).catch(() => undefined))?.status)
    }
  })
  const listening = runWorkers(4, async () => {
    while (going) {
      using socket = await SocketClient.connect({ url }).catch(() => undefined)
      if (socket === undefined) {
        closings.push(0)
        continue
      }
      sockets.add(socket)
      socket.begin('subscription { postAdded { id } }')
      const { code } = await socket.closed
      sockets.delete(socket)
      if (going) closings.push(code)
    }
  })
  const stop = async () => {
    going = false
    for (const socket of sockets) socket.websocket.close()
    await Promise.all([paying, listening])
  }
  return { reads, closings, stop }
}
