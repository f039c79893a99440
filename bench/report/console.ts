import type { Result } from '../core/model.ts'
import { ratioOf, type Verdict } from '../goals.ts'
import { cellOf, columnsOf, loadShareOf, roundsOf } from './table.ts'

/** A part of the run and the time that it took, in seconds. */
export interface Timed {
  readonly name: string
  readonly planned: number
  readonly used: number
}

interface Planned {
  readonly name: string
  readonly seconds: number
  readonly cases: readonly { readonly contenders: readonly string[] }[]
}

export function printPlan(parts: readonly Planned[]): void {
  console.log('\nPlan, for two cores without other work')
  for (const { name, seconds, cases } of parts) {
    const servers = cases.reduce((sum, { contenders }) => sum + contenders.length, 0)
    const what = `${cases.length} cases, ${servers} servers in them`
    console.log(`  ${name.padEnd(16)} ${String(seconds).padStart(4)} s  ${what}`)
  }
  console.log(`  ${'in all'.padEnd(16)} ${String(parts.reduce((sum, { seconds }) => sum + seconds, 0)).padStart(4)} s`)
}

export function printTimes(times: readonly Timed[], whole: number): void {
  console.log('\nTime')
  for (const { name, planned, used } of times) {
    console.log(`  ${name.padEnd(16)} ${used.toFixed(0).padStart(4)} s of ${planned} s`)
  }
  console.log(`  took ${whole.toFixed(0)} s`)
}

export function printResult(result: Result): void {
  console.log(`\n${result.name}: ${result.title} (${roundsOf([result])})`)
  const columns = columnsOf(result)
  const rows = [
    ['', ...columns.map(({ title }) => title)],
    ...result.series.map(each => [each.name, ...columns.map(column => cellOf(result, each, column))]),
  ]
  const widths = ['', ...columns].map((_, at) => Math.max(...rows.map(row => row[at]?.length ?? 0)))
  for (const row of rows) console.log(`  ${row.map((text, at) => text.padEnd(widths[at] ?? 0)).join('  ')}`)
  console.log(`  load process: ${(100 * loadShareOf([result])).toFixed(0)} % of a core at most`)
  if (result.note !== undefined) console.log(`  ${result.note}`)
}

export function printVerdicts(verdicts: readonly Verdict[]): void {
  console.log('\nGoals')
  for (const { goal, reached, isMet } of verdicts) {
    console.log(`  ${isMet ? 'met   ' : 'MISSED'} ${goal}: ${reached}`)
  }
  const met = verdicts.filter(({ isMet }) => isMet).length
  console.log(`  ${met} of ${verdicts.length} met`)
}

/** All ratios as one line: median, least and greatest over the rounds. */
export function ratiosAsJson(results: readonly Result[], verdicts: readonly Verdict[]): string {
  const measures = ['cpu', 'databaseCpu', 'perSecond', 'p50', 'p99', 'memory'] as const
  const ratios = Object.fromEntries(
    results.map(result => [
      result.name,
      Object.fromEntries(
        result.series.slice(1).map(({ name }) => [
          name,
          Object.fromEntries(
            measures.flatMap(measure => {
              const ratio = ratioOf(result, name, measure)
              if (ratio === undefined || !Number.isFinite(ratio.median)) return []
              return [[measure, [ratio.median, ratio.low, ratio.high].map(value => Number(value.toFixed(3)))]]
            }),
          ),
        ]),
      ),
    ]),
  )
  const missed = verdicts.filter(({ isMet }) => !isMet).map(({ goal, reached }) => `${goal}: ${reached}`)
  return JSON.stringify({ ratios, goals: { met: verdicts.length - missed.length, missed } })
}
