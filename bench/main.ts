import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Context, Named, Part } from './cases/context.ts'
import { growth } from './cases/growth.ts'
import { postgres } from './cases/postgres.ts'
import { slowDisk } from './cases/slow-disk.ts'
import { sqlite } from './cases/sqlite.ts'
import { subscriptions } from './cases/subscriptions.ts'
import { threads } from './cases/threads.ts'
import { type Choice, choiceOf, quickChoice } from './choice.ts'
import { Starter, skippedLines } from './core/contenders.ts'
import { Generator } from './core/generator.ts'
import { machine } from './core/machine.ts'
import type { Pace, Result } from './core/model.ts'
import { Tokens } from './core/tokens.ts'
import { verdicts } from './goals.ts'
import { printPlan, printResult, printTimes, printVerdicts, ratiosAsJson, type Timed } from './report/console.ts'
import { writeDocument } from './report/markdown.ts'

// Duet beside others, in one run. See docs/benchmarks.md, which a full run writes.

const { values: options } = parseArgs({
  options: {
    /** The cases that the goals are about, in a minute and a half. */
    quick: { type: 'boolean', default: false },
    /** Only these cases, by their names, separated by commas. Prints and writes nothing. */
    only: { type: 'string' },
    /** Only these servers beside Duet, by parts of their names. */
    against: { type: 'string' },
    /** Exactly so many rounds of each case. */
    rounds: { type: 'string' },
  },
})
const isChosen = options.only !== undefined || options.against !== undefined

/** Seconds that each part should take on two cores without other work. What one leaves is for those after it. */
const parts: readonly { readonly part: Part; readonly seconds: { readonly quick: number; readonly full: number } }[] = [
  { part: sqlite, seconds: { quick: 34, full: 250 } },
  { part: postgres, seconds: { quick: 10, full: 45 } },
  { part: slowDisk, seconds: { quick: 10, full: 15 } },
  { part: subscriptions, seconds: { quick: 25, full: 140 } },
  { part: growth[0] as Part, seconds: { quick: 8, full: 40 } },
  { part: growth[1] as Part, seconds: { quick: 0, full: 80 } },
  { part: threads, seconds: { quick: 0, full: 10 } },
]
const paces: Readonly<Record<'quick' | 'full' | 'chosen', Omit<Pace, 'deadline'>>> = {
  quick: {
    rounds: { least: 3, most: 10 },
    sliceMs: 120,
    settleMs: 25,
    warm: { answers: 1000, mostCpuMs: 600 },
    deliveries: 3000,
  },
  full: {
    rounds: { least: 3, most: 15 },
    sliceMs: 180,
    settleMs: 30,
    warm: { answers: 2500, mostCpuMs: 2000 },
    deliveries: 10_000,
  },
  chosen: {
    rounds: { least: 5, most: 15 },
    sliceMs: 400,
    settleMs: 50,
    warm: { answers: 5000, mostCpuMs: 4000 },
    deliveries: 20_000,
  },
}

const start = performance.now()
const about = machine()
for (const line of about) console.log(line)
const form = options.quick ? 'quick' : 'full'
const exactly = options.rounds === undefined ? undefined : Number(options.rounds)
const pace = {
  ...paces[isChosen && !options.quick ? 'chosen' : form],
  ...(exactly !== undefined && { rounds: { least: exactly, most: exactly } }),
}
const tokens = await Tokens.make()
const everything = parts.flatMap(({ part }) => part.cases(tokens))
const isWanted: Choice = !isChosen && options.quick ? quickChoice : choiceOf(everything, options.only, options.against)
/** Without other contenders there is nothing to compare, so the case is left out. */
const choose = <Each extends Named>(cases: readonly Each[]): readonly Each[] =>
  cases
    .map(each => ({
      ...each,
      contenders: each.contenders.filter((contender, at) => at === 0 || isWanted(each.name, contender)),
    }))
    .filter(({ contenders }) => contenders.length > 1)
const wanted = parts
  .map(({ part, seconds }) => ({ part, seconds: seconds[form], cases: choose(part.cases(tokens)) }))
  .filter(({ cases }) => cases.length > 0)
printPlan(wanted.map(({ part, seconds, cases }) => ({ name: part.name, seconds, cases })))

const results: Result[] = []
const times: Timed[] = []
{
  await using stack = new AsyncDisposableStack()
  const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'duet-bench-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const context: Omit<Context, 'pace'> = {
    folder,
    generator: stack.use(new Generator()),
    tokens,
    choose,
    starter: servers => new Starter(folder, tokens.keys, servers),
  }
  let planned = 0
  for (const { part, seconds } of wanted) {
    planned += seconds
    const begun = performance.now()
    const measured = await part.run({ ...context, pace: { ...pace, deadline: start + planned * 1000 } })
    for (const result of measured) printResult(result)
    results.push(...measured)
    times.push({ name: part.name, planned: seconds, used: (performance.now() - begun) / 1000 })
  }
}
const reached = verdicts(results)
printVerdicts(reached)
printTimes(times, (performance.now() - start) / 1000)
if (!options.quick && !isChosen) {
  writeDocument({ results, machine: about, skipped: skippedLines(), pace })
  console.log('docs/benchmarks.md is written; `npm run build` renders it')
}
console.log(ratiosAsJson(results, reached))
