import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { graphql } from './core/requests.ts'
import { BenchServer } from './core/server.ts'
import { databaseFor } from './databases.ts'
import { load } from './load.ts'
import { fillStatements } from './plant.ts'
import { operations } from './queries.ts'

// Page 1 against page 10,000 of all posts, ten a page, by `after` and by `offset`, on both engines: time per request, one
// at a time, interleaved in one run.

const posts = 100_000 + 10
const rounds = 15
const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'duet-bench-'))
const program = [join(import.meta.dirname, '..', 'bin', 'duet.mjs'), 'serve']
const settings = { PORT: '0', LOG_LEVEL: 'warn', RATE_LIMIT_MAX: '0', DEMO_DATA: 'false' }

const after = (id: number) => graphql(operations.nested.query, { after: String(id) })
const offset = (posts: number) => graphql(operations.nestedOffset.query, { offset: posts })
const requests: readonly (readonly [what: string, request: string])[] = [
  ['after, page 1', after(posts + 1)],
  ['after, page 10,000', after(posts - 99_990)],
  ['offset, page 1', offset(0)],
  ['offset, page 10,000', offset(99_990)],
]

for (const kind of ['sqlite', 'postgres'] as const) {
  await using stack = new AsyncDisposableStack()
  const statements = [...fillStatements(kind, posts), ...(kind === 'postgres' ? ['vacuum'] : [])]
  const { environment } = await databaseFor(kind, folder, stack, statements)
  const { port } = stack.use(await BenchServer.start(program, { ...settings, ...environment }))
  const times = requests.map((): number[] => [])
  for (const [, request] of requests) await load(port, request, 1, 500)
  for (let round = 0; round < rounds; round++) {
    for (const [at, [, request]] of requests.entries()) times[at]?.push(200_000 / (await load(port, request, 1, 200)))
  }
  for (const [at, [what]] of requests.entries()) {
    const median = times[at]?.toSorted((a, b) => a - b)[rounds >> 1] ?? 0
    console.log(`${kind.padEnd(9)} ${what.padEnd(20)} ${median.toFixed(0)} µs`)
  }
}
rmSync(folder, { recursive: true, force: true })
