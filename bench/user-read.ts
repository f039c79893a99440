import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BenchServer, load } from './load.ts'

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
  const servers = { duet, 'bare node:http': bare }
  const spent = { duet: { cpu: 0, answers: 0 }, 'bare node:http': { cpu: 0, answers: 0 } }
  for (const { port } of Object.values(servers)) await load(port, request, 16, 2000) // warm
  for (let round = 0; round < rounds; round++) {
    for (const [name, total] of Object.entries(spent)) {
      const server = servers[name as keyof typeof servers]
      const before = server.cpu()
      total.answers += await load(server.port, request, 16, 400)
      total.cpu += server.cpu() - before
    }
  }
  const cost = ({ cpu, answers }: { cpu: number; answers: number }) => cpu / answers
  for (const [name, total] of Object.entries(spent)) {
    const ratio = cost(total) / cost(spent['bare node:http'])
    console.log(`${name.padEnd(16)} ${cost(total).toFixed(1).padStart(6)} µs of CPU per request  ${ratio.toFixed(2)} x`)
  }
}
rmSync(folder, { recursive: true, force: true })
