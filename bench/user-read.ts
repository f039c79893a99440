import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BenchServer, compareCpu } from './load.ts'

// Server CPU of GET /users/<id> on SQLite: Duet as it is served, metrics on, against a bare node:http handler with the
// same read. Interleaved in one run.

const folder = mkdtempSync(join(tmpdir(), 'duet-bench-'))
const path = join(folder, 'duet.db')
const request = 'GET /users/1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
{
  await using duet = await BenchServer.start([join(import.meta.dirname, '..', 'bin', 'duet.mjs'), 'serve'], {
    PORT: '0',
    DATABASE_URL: `sqlite:${path}`,
    LOG_LEVEL: 'warn',
  })
  await using bare = await BenchServer.start([join(import.meta.dirname, 'bare-user-server.ts'), path])
  await compareCpu({ duet, 'bare node:http': bare }, request)
}
rmSync(folder, { recursive: true, force: true })
