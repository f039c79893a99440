import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { BenchServer } from './core/server.ts'

// One client that is above its limit opens 20 connections a second, each with a packet of 64 KiB that is as expensive as
// possible. How many requests of others are answered meanwhile? In the control the same bytes go to a server that only
// discards them, so that both have the same load beside the service.

const packetBytes = 65_536
const attackers = { kinds: kinds(), perSecond: 20, address: '127.0.0.66' }

function kinds(): Readonly<Record<string, string>> {
  const host = 'Host: localhost\r\n'
  const full = (text: string) => text.repeat(Math.floor(packetBytes / text.length))
  const chunked = `HTTP/1.1\r\n${host}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
  return {
    'pipelined GET': full('GET /graphql HTTP/1.1\r\n\r\n'),
    'one-byte chunks': `POST /graphql ${chunked}${'1\r\n \r\n'.repeat(10_000)}`,
    'chunks with OPTIONS': `OPTIONS / ${chunked}${'1\r\n \r\n'.repeat(10_000)}`,
    OPTIONS: full(`OPTIONS / HTTP/1.1\r\n${host}\r\n`),
    '/': full(`GET / HTTP/1.1\r\n${host}\r\n`),
    health: full(`GET /health/live HTTP/1.1\r\n${host}\r\n`),
    malformed: full('no request\r\n\r\n'),
  }
}

if (isMainThread) await main()
else parentPort?.postMessage(await others(workerData))

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      /** Of each measurement. */
      seconds: { type: 'string', default: '12' },
      threads: { type: 'string', default: '1,2' },
      /** Only what has this in its name. */
      only: { type: 'string', default: '' },
    },
  })
  const ms = Number(values.seconds) * 1000
  const idle = createServer(socket => socket.on('error', () => {}).resume()).listen(0, '127.0.0.1')
  await once(idle, 'listening')
  const { port: idlePort } = idle.address() as AddressInfo
  console.log('threads  kind                  control  attacked  ratio')
  for (const threads of values.threads.split(',')) {
    for (const [kind, packet] of Object.entries(attackers.kinds)) {
      if (!kind.includes(values.only)) continue
      const control = await measure(threads, packet, ms, idlePort)
      const attacked = await measure(threads, packet, ms)
      const ratio = (attacked / control).toFixed(2)
      console.log(
        `${threads.padEnd(9)}${kind.padEnd(20)}${String(control).padStart(9)}${String(attacked).padStart(10)}${ratio.padStart(7)}`,
      )
    }
  }
  idle.close()
}

/** Answers to others while a client floods this server, or another port. A new server, so that no window is left over. */
async function measure(threads: string, packet: string, ms: number, target?: number): Promise<number> {
  const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'duet-bench-'))
  try {
    await using server = await BenchServer.start([join(import.meta.dirname, '..', 'bin', 'duet.mjs'), 'serve'], {
      DATABASE_URL: `sqlite:${join(folder, 'duet.db')}`,
      PORT: '0',
      THREADS: threads,
      LOG_LEVEL: 'fatal',
      DEMO_DATA: 'true',
      RATE_LIMIT_PATHS: '/',
    })
    await exceed(server.port)
    const worker = new Worker(new URL(import.meta.url), { workerData: { port: server.port, ms } })
    const answered = Promise.withResolvers<number>()
    worker.once('message', answered.resolve).once('error', answered.reject)
    const endFlood = flood(target ?? server.port, packet)
    return await answered.promise.finally(endFlood)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Brings the attacker above its limit. */
async function exceed(port: number): Promise<void> {
  for (let sent = 0; sent < 101; sent++) await ask(port, attackers.address)
}

/** Returns what ends it. */
function flood(port: number, packet: string): () => void {
  const timer = setInterval(() => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: attackers.address })
    socket.on('error', () => {}).resume()
    socket.write(packet)
    setTimeout(() => socket.destroy(), 1_000)
  }, 1000 / attackers.perSecond)
  return () => clearInterval(timer)
}

/** How many requests are answered to clients that ask one after the other, with a new address before each limit. */
async function others({ port, ms }: { readonly port: number; readonly ms: number }): Promise<number> {
  const end = performance.now() + ms
  let answered = 0
  const one = async (number: number) => {
    for (let count = 0; performance.now() < end; count++) {
      const agent = new Agent({ keepAlive: true })
      for (let sent = 0; sent < 90 && performance.now() < end; sent++) {
        await ask(port, `127.${number}.${count >> 8}.${count & 255}`, agent)
        if (performance.now() < end) answered++
      }
      agent.destroy()
    }
  }
  await Promise.all([1, 2, 3, 4].map(one))
  return answered
}

function ask(port: number, localAddress: string, agent?: Agent): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  get({ port, host: '127.0.0.1', localAddress, path: '/users/1', agent }, response => {
    response.resume().on('end', resolve)
  }).on('error', reject)
  return promise
}
