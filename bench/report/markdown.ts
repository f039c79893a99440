import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Pace, Result } from '../core/model.ts'
import type { Verdict } from '../goals.ts'
import { agreementOf, runOn } from './agreement.ts'
import { chartOf } from './chart.ts'
import { duetDoesMore, notShown, setups } from './setup.ts'
import { cellOf, columnsOf, loadShareOf, roundsOf } from './table.ts'

const docs = join(import.meta.dirname, '..', '..', 'docs')
const page = join(docs, 'benchmarks.md')
const images = join(docs, 'images')

export interface Report {
  readonly results: readonly Result[]
  readonly verdicts: readonly Verdict[]
  readonly machine: readonly string[]
  readonly skipped: readonly string[]
  readonly pace: Pick<Pace, 'sliceMs' | 'warm'>
}

/** Writes docs/benchmarks.md and its charts. */
export function writeDocument(report: Report): void {
  mkdirSync(images, { recursive: true })
  for (const name of readdirSync(images)) if (name.startsWith('bench-')) rmSync(join(images, name))
  for (const result of report.results) writeFileSync(join(images, `bench-${result.name}.svg`), chartOf(result))
  const before = existsSync(page) ? runOn(readFileSync(page, 'utf8')) : undefined
  const now = runOn(documentOf(report, []))
  writeFileSync(page, documentOf(report, before && now ? agreementOf(before, now) : []))
}

function documentOf({ results, verdicts, machine, skipped, pace }: Report, agreement: readonly string[]): string {
  const date = new Date().toISOString().slice(0, 10)
  return [
    '# Benchmarks',
    '',
    'Duet beside servers that many use. This page and its charts are written by the benchmark itself:',
    '',
    '```sh',
    'npm --prefix bench install   # once: the other servers',
    'npm run bench                # about ten minutes; writes this page',
    'npm run bench -- --quick     # a minute and a half; prints the ratios as JSON on its last line',
    'npm run bench -- --only nested,like --against apollo,mercurius --rounds 10   # some cases and servers; prints only',
    '```',
    '',
    `Measured on ${date}:`,
    '',
    ...machine.map(line => `- ${line}`),
    `- ${roundsOf(results)}, more where the ratios were less sure; each visits the cases in turn and in a case every server, ${pace.sliceMs} ms each`,
    `- before the first round each server was warmed up in each case: by ${pace.warm.answers.toLocaleString('en')} requests (not where an earlier case has the same operation), and more until its CPU per request fell no further or it had used ${pace.warm.mostCpuMs / 1000} s of CPU`,
    `- the load process, which sends the requests, used at most ${(100 * loadShareOf(results)).toFixed(0)} % of a core`,
    ...skipped.map(line => `- ${line}`),
    '',
    'Before a case is measured, every server must give the same answer to the same requests. Requests are varied: each asks',
    'for another row or page, except in the case that says so. In the tables the figure is the median over the rounds; for',
    'all servers but the first it is followed by its ratio to the first, with the least and the greatest ratio of any round.',
    'CPU is all that the server process used, in user and kernel mode, with all its threads; on PostgreSQL the CPU of the',
    "database's processes is a column of its own. Memory is what the process held at the end of the case, after all cases before.",
    '',
    '## Goals',
    '',
    'The third column says what the bare handler reaches in the place of Duet. It runs the same statements on the same',
    'runtime and does nothing else; it does not share equal reads, and it commits every write alone. Where it misses a goal',
    'about reads or events too, no server on this runtime could reach it with these statements.',
    '',
    '| Goal | Duet | bare handler | |',
    '|---|---|---|---|',
    ...verdicts.map(
      ({ goal, reached, ceiling = '', isMet }) =>
        `| ${goal} | ${reached} | ${ceiling} | ${isMet ? 'met' : '**missed**'} |`,
    ),
    ...(agreement.length === 0 ? [] : ['', '## Compared with the run before', '', ...agreement]),
    '',
    '## Results',
    ...results.flatMap(sectionOf),
    '',
    '## How each server is set up',
    '',
    'All read and write the same tables in the same SQLite file, through `node:sqlite` (Go: go-sqlite3) with prepared',
    'statements and durable commits (`synchronous = full`). The programs are in `bench/peers/`.',
    '',
    '| Server | Set up | Recommended in |',
    '|---|---|---|',
    ...setups.map(row => `| ${row.join(' | ')} |`),
    '',
    'Duet does some things that the others do not do here. It',
    '',
    ...duetDoesMore.map((line, at) => `- ${line}${at === duetDoesMore.length - 1 ? '.' : ';'}`),
    '',
    '## What the comparison does not show',
    '',
    ...notShown.map(line => `- ${line}`),
    '',
  ].join('\n')
}

function sectionOf(result: Result): readonly string[] {
  const columns = columnsOf(result)
  return [
    '',
    `### ${result.title}`,
    '',
    `![${result.title}](images/bench-${result.name}.svg)`,
    '',
    `Case \`${result.name}\`, ${roundsOf([result])}.`,
    '',
    `| | ${columns.map(({ title }) => title).join(' | ')} |`,
    `|---|${columns.map(() => '---|').join('')}`,
    ...result.series.map(
      each => `| ${each.name} | ${columns.map(column => cellOf(result, each, column)).join(' | ')} |`,
    ),
    ...(result.note === undefined ? [] : ['', result.note]),
  ]
}
