import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Context, Part } from './cases/context.ts'
import { growth } from './cases/growth.ts'
import { postgres } from './cases/postgres.ts'
import { slowDisk } from './cases/slow-disk.ts'
import { sqlite } from './cases/sqlite.ts'
import { subscriptions } from './cases/subscriptions.ts'
import { threads } from './cases/threads.ts'
import { Starter, skippedLines } from './core/contenders.ts'
import { Generator } from './core/generator.ts'
import { machine } from './core/machine.ts'
import type { Pace, Result } from './core/model.ts'
import { Tokens } from './core/tokens.ts'
import { verdicts } from './goals.ts'
import { printResult, printVerdicts, ratiosAsJson } from './report/console.ts'
import { writeDocument } from './report/markdown.ts'

// Duet beside others, in one run. See docs/benchmarks.md, which a full run writes.

const { values: options } = parseArgs({
  options: {
    /** A minute instead of ten. */
    quick: { type: 'boolean', default: false },
    /** Only cases whose name matches this expression. */
    only: { type: 'string' },
    rounds: { type: 'string' },
    /** Writes the document also after a run that is not complete. */
    write: { type: 'boolean', default: false },
  },
})
/** By when each part should be done, as a share of the whole time. What a part leaves is for those after it. */
const parts: readonly (readonly [Part, number])[] = [
  [sqlite, 0.5],
  [postgres, 0.6],
  [slowDisk, 0.63],
  [subscriptions, 0.8],
  [growth, 0.95],
  [threads, 1],
]
const mostMs = { quick: 80_000, full: 570_000 } as const
const settle = { ms: 20, answers: 1, mostMs: 20 }
const paces: Readonly<Record<'quick' | 'full', Omit<Pace, 'deadline'>>> = {
  quick: { rounds: 2, sliceMs: 100, warm: { ms: 100, answers: 400, mostMs: 500 }, settle },
  full: { rounds: 5, sliceMs: 350, warm: { ms: 300, answers: 2000, mostMs: 2000 }, settle },
}

const start = performance.now()
const about = machine()
for (const line of about) console.log(line)
const form = options.quick ? 'quick' : 'full'
const pace = { ...paces[form], ...(options.rounds !== undefined && { rounds: Number(options.rounds) }) }
const wanted = options.only === undefined ? undefined : new RegExp(options.only)
const results: Result[] = []
{
  await using stack = new AsyncDisposableStack()
  const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'duet-bench-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const tokens = await Tokens.make()
  const context: Omit<Context, 'pace'> = {
    folder,
    generator: stack.use(new Generator()),
    tokens,
    isQuick: options.quick,
    wants: name => wanted?.test(name) ?? true,
    starter: servers => new Starter(folder, tokens.keys, servers),
  }
  for (const [part, share] of parts) {
    const deadline = start + share * mostMs[form]
    const measured = await part.run({ ...context, pace: { ...pace, deadline } })
    for (const result of measured) printResult(result)
    results.push(...measured)
  }
}
const reached = verdicts(results)
printVerdicts(reached)
console.log(`\ntook ${((performance.now() - start) / 1000).toFixed(0)} s`)
if (options.write || (!options.quick && wanted === undefined)) {
  writeDocument({ results, verdicts: reached, machine: about, skipped: skippedLines(), pace })
  console.log('docs/benchmarks.md is written')
}
console.log(ratiosAsJson(results, reached))
