import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BenchServer, compareCpu } from './load.ts'
import { fillSqlite } from './plant.ts'
import { pageRequests, tenPostsRequest } from './ten-posts.ts'

// Server CPU of the query for ten posts with authors, comments and the comments' authors, on SQLite: Duet as it is
// served, metrics on, against a bare node:http handler that runs the same statement. Interleaved in one run: first all
// clients ask for the same page, of which Duet reads one for all who ask in the same moment, then each for another.

const folder = mkdtempSync(join(tmpdir(), 'duet-bench-'))
const path = join(folder, 'duet.db')
fillSqlite(path, 1000)
{
  await using duet = await BenchServer.start([join(import.meta.dirname, '..', 'bin', 'duet.mjs'), 'serve'], {
    PORT: '0',
    DATABASE_URL: `sqlite:${path}`,
    LOG_LEVEL: 'warn',
    RATE_LIMIT_MAX: process.env.BENCH_RATE_LIMIT ?? '1000000000',
  })
  await using bare = await BenchServer.start([join(import.meta.dirname, 'bare-posts-server.ts'), path])
  console.log('The same page')
  await compareCpu({ duet, 'bare node:http': bare }, tenPostsRequest())
  console.log('Pages of their own')
  await compareCpu({ duet, 'bare node:http': bare }, pageRequests(100))
}
rmSync(folder, { recursive: true, force: true })
