import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BenchServer, load, median } from './load.ts'

// Server CPU of GET /users/<id> on SQLite: Duet as it is served, metrics on, against a bare node:http handler with the
// same read. Interleaved in one run.

const folder = mkdtempSync(join(tmpdir(), 'duet-bench-'))
const path = join(folder, 'duet.db')
const request = 'GET /users/1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
const rounds = 25
{
  await using duet = await BenchServer.start([join(import.meta.dirname, '..', 'bin', 'duet.mjs'), 'serve'], {
    PORT: '0',
    DATABASE_URL: `sqlite:${path}`,
    LOG_LEVEL: 'warn',
  })
  await using bare = await BenchServer.start([join(import.meta.dirname, 'bare-user-server.ts'), path])
  const costs = { duet: [] as number[], 'bare node:http': [] as number[] }
  for (const server of [duet, bare]) await load(server.port, request, 16, 2000) // warm
  for (let round = 0; round < rounds; round++) {
    for (const [name, server] of [
      ['duet', duet],
      ['bare node:http', bare],
    ] as const) {
      const before = server.cpu()
      const answers = await load(server.port, request, 16, 400)
      costs[name].push((server.cpu() - before) / answers)
    }
  }
  for (const [name, values] of Object.entries(costs)) {
    const ratio = median(values.map((cost, index) => cost / (costs['bare node:http'][index] ?? Number.NaN)))
    console.log(
      `${name.padEnd(16)} ${median(values).toFixed(1).padStart(6)} µs of CPU per request  ${ratio.toFixed(2)} x`,
    )
  }
}
rmSync(folder, { recursive: true, force: true })
