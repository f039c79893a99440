import { connect, type Socket } from 'node:net'
import type { BenchServer } from './core/server.ts'

/** Sends one request after another on each of so many connections, and counts whole answers. */
export async function load(
  port: number,
  request: string | (() => string),
  connections: number,
  ms: number,
): Promise<number> {
  const next = typeof request === 'string' ? () => request : request
  const end = performance.now() + ms
  let answers = 0
  const client = (socket: Socket) =>
    new Promise<void>((resolve, reject) => {
      let received = Buffer.alloc(0)
      socket.on('error', reject)
      socket.on('data', data => {
        received = received.length === 0 ? data : Buffer.concat([received, data])
        const head = received.indexOf('\r\n\r\n')
        const length = /content-length: (\d+)/i.exec(received.toString('latin1', 0, head))?.[1]
        if (head < 0 || received.length < head + 4 + Number(length ?? 0)) return
        if (received[9] !== 0x32 && received[9] !== 0x33) return reject(new Error(received.toString('utf8')))
        received = Buffer.alloc(0)
        answers++
        if (performance.now() < end) socket.write(next())
        else {
          socket.end()
          resolve()
        }
      })
      socket.write(next())
    })
  await Promise.all(Array.from({ length: connections }, () => client(connect(port, '127.0.0.1').setNoDelay())))
  return answers
}

/** Loads servers in turn with the same request and prints the CPU that each spends on one, the last being the measure. */
export async function compareCpu(
  servers: Readonly<Record<string, BenchServer>>,
  request: string | (() => string),
  { rounds = 25, connections = 16 } = {},
): Promise<void> {
  const spent = Object.entries(servers).map(([name, server]) => ({ name, server, cpu: 0, answers: 0 }))
  for (const { server } of spent) await load(server.port, request, connections, 2000) // warm
  for (let round = 0; round < rounds; round++) {
    for (const each of spent) {
      const before = each.server.cpu()
      each.answers += await load(each.server.port, request, connections, 400)
      each.cpu += each.server.cpu() - before
    }
  }
  const costs = spent.map(({ cpu, answers }) => cpu / answers)
  for (const [index, { name }] of spent.entries()) {
    const cost = costs[index] ?? 0
    const ratio = cost / (costs.at(-1) ?? 1)
    console.log(`${name.padEnd(20)} ${cost.toFixed(1).padStart(7)} µs of CPU per request  ${ratio.toFixed(2)} x`)
  }
}
