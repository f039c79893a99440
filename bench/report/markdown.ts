import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Pace, Result } from '../core/model.ts'
import { agreementOf, runOn } from './agreement.ts'
import { chartOf } from './chart.ts'
import { chaptersOf, charted, type Row, rowsOf } from './ratios.ts'
import { duetDoesMore, notShown, setups } from './setup.ts'
import { loadShareOf, roundsOf } from './table.ts'

const docs = join(import.meta.dirname, '..', '..', 'docs')
const page = join(docs, 'benchmarks.md')
const images = join(docs, 'images')

export interface Report {
  readonly results: readonly Result[]
  readonly machine: readonly string[]
  readonly skipped: readonly string[]
  readonly pace: Pick<Pace, 'sliceMs' | 'warm'>
}

/** Writes docs/benchmarks.md and its charts. */
export function writeDocument(report: Report): void {
  mkdirSync(images, { recursive: true })
  for (const name of readdirSync(images)) if (name.startsWith('bench-')) rmSync(join(images, name))
  for (const result of report.results.filter(({ name }) => charted.includes(name)))
    writeFileSync(join(images, `bench-${result.name}.svg`), chartOf(result))
  const head = { date: new Date().toISOString().slice(0, 10), about: aboutOf(report) }
  const rows = report.results.flatMap(rowsOf)
  const before = existsSync(page) ? runOn(readFileSync(page, 'utf8')) : undefined
  const now = runOn(documentOf(head, rows, []))
  writeFileSync(page, documentOf(head, rows, before && now ? agreementOf(before, now) : []))
}

/** On what and how a run was measured. */
function aboutOf({ results, machine, skipped, pace }: Report): readonly string[] {
  return [
    ...machine,
    `${roundsOf(results)}, more where the ratios were less sure; each visits the cases in turn and in a case every server, ${pace.sliceMs} ms each`,
    `before the first round each server was warmed up in each case: by ${pace.warm.answers.toLocaleString('en')} requests (not where an earlier case has the same operation), and more until its CPU per request fell no further or it had used ${pace.warm.mostCpuMs / 1000} s of CPU`,
    `the load process, which sends the requests, used at most ${(100 * loadShareOf(results)).toFixed(0)} % of a core`,
    ...skipped,
  ]
}

/** The page. */
export function documentOf(
  { date, about }: { readonly date: string; readonly about: readonly string[] },
  rows: readonly Row[],
  agreement: readonly string[],
): string {
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
    ...about.map(line => `- ${line}`),
    '',
    'Before a case is measured, every server must give the same answer to the same requests. Requests are varied: each asks',
    'for another row or page, except in the case that says so. The first column of figures is what Duet takes: CPU of the',
    'server process for one request, in user and kernel mode, with all its threads, and requests per second (with',
    'subscriptions: deliveries, each of one event to one socket). The others are ratios: how many times as much CPU another',
    'server takes, as the median over the rounds, with the least and the greatest of any round. The bare handler runs the same',
    'statements on the same runtime and does nothing else: it is the ceiling. `npm run bench` prints latencies and memory too.',
    ...chaptersOf(rows),
    ...(agreement.length === 0 ? [] : ['', '## Compared with the run before', '', ...agreement]),
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
