import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Client } from './client.ts'
import { BenchServer, probed } from './core/server.ts'
import { databaseFor } from './databases.ts'
import { fillStatements } from './plant.ts'
import { MemoryRecord } from './soak/memory-record.ts'
import { Traffic } from './soak/traffic.ts'

// Minutes of mixed traffic against one server with a capped heap: does its memory grow? Prints memory every ten seconds,
// and how fast it grew after the warm-up. What fills up once can be told from a leak by making it small: `--cache-kb`
// gives SQLite another page cache, `--semi-mb` bounds the heap of new objects (0: as V8 likes, 192 MB in all), and
// MALLOC_MMAP_THRESHOLD_=1048576 makes the allocator give back what password hashing took.

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    engine: { type: 'string', default: 'sqlite' },
    rate: { type: 'string', default: '150' },
    'heap-mb': { type: 'string', default: '128' },
    'semi-mb': { type: 'string', default: '16' },
    'warm-up': { type: 'string', default: '0.3' },
    'cache-kb': { type: 'string' },
  },
})
// So that a page of posts is more than a socket takes at once.
const longContents = `update posts set content = content || '${'Some more of the same. '.repeat(170)}'`
const everyMs = 10_000
const ms = Number(values.minutes) * 60_000
const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'duet-bench-'))
try {
  await using stack = new AsyncDisposableStack()
  const kind = values.engine === 'postgres' ? 'postgres' : 'sqlite'
  const database = await databaseFor(kind, folder, stack, [...fillStatements(kind, 2000), longContents])
  const environment = {
    ...database.environment,
    PORT: '0',
    LOG_LEVEL: 'fatal',
    DEMO_DATA: 'false',
    RATE_LIMIT_MAX: '0',
    LOGIN_LIMIT_MAX: '0',
    ...(values['cache-kb'] && { BENCH_CACHE_KB: values['cache-kb'] }),
  }
  const caps = [`--max-old-space-size=${values['heap-mb']}`, `--max-semi-space-size=${values['semi-mb']}`]
  const program = [...probed, ...caps, join(import.meta.dirname, '..', 'bin', 'duet.mjs'), 'serve']
  const server = stack.use(await BenchServer.start(program, environment))
  const client = stack.use(new Client(server.port))
  await client.logIn(1)

  console.log(
    `${kind}, ${values.rate} requests a second for ${values.minutes} minutes, a heap of ${values['heap-mb']} MB`,
  )
  const traffic = new Traffic(client, server.port)
  const record = new MemoryRecord(server)
  const start = performance.now()
  await record.sample(0)
  while (performance.now() - start < ms) {
    await traffic.flow(Number(values.rate), Math.min(everyMs, start + ms - performance.now()))
    await record.sample((performance.now() - start) / 1000)
  }
  await traffic.settle()
  const counts = [...traffic.answers].sort(([, a], [, b]) => b - a).map(([answer, count]) => `${answer}: ${count}`)
  console.log(`Answers: ${counts.join(', ')}`)
  record.conclude(Number(values['warm-up']))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
