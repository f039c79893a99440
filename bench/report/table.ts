import type { Result, Sample, Series } from '../core/model.ts'
import { spreadOf } from '../core/statistics.ts'
import { ratioOf } from '../goals.ts'

export interface Column {
  readonly title: string
  readonly measure: keyof Sample
  readonly shown: (value: number) => string
}

const databaseColumn: Column = {
  title: "database's CPU",
  measure: 'databaseCpu',
  shown: value => `${short(value)} µs`,
}

/** The columns of a case: what is measured, and how it is written. */
export function columnsOf({ series, unit }: Result): readonly Column[] {
  const hasDatabase = series.some(({ samples }) => samples.some(({ databaseCpu }) => databaseCpu > 0))
  const one = unit ?? 'request'
  return [
    { title: `server CPU per ${one}`, measure: 'cpu', shown: value => `${short(value)} µs` },
    ...(hasDatabase ? [databaseColumn] : []),
    { title: unit === undefined ? 'requests/s' : 'deliveries/s', measure: 'perSecond', shown: whole },
    { title: 'p50', measure: 'p50', shown: value => `${short(value)} ms` },
    { title: 'p99', measure: 'p99', shown: value => `${short(value)} ms` },
    {
      title: 'memory',
      measure: 'memory',
      shown: value => (unit === undefined ? `${whole(value / 1e6)} MB` : `${short(value / 1000)} KB`),
    },
  ]
}

/** A value, and for all but the first contender its ratio to the first with the spread over the rounds. */
export function cellOf(result: Result, { name, samples }: Series, { measure, shown }: Column): string {
  const { median } = spreadOf(samples.map(sample => sample[measure]))
  if (measure === 'databaseCpu' && median === 0) return '–'
  const value = shown(median)
  if (result.series[0]?.name === name) return value
  const ratio = ratioOf(result, name, measure)
  if (ratio === undefined || !Number.isFinite(ratio.median)) return value
  return `${value} · ${ratio.median.toFixed(2)} × (${ratio.low.toFixed(2)}–${ratio.high.toFixed(2)})`
}

/** How many rounds the cases had, in words. */
export function roundsOf(results: readonly Result[]): string {
  const counts = results.flatMap(({ series }) => series.map(({ samples }) => samples.length))
  const [least, most] = [Math.min(...counts), Math.max(...counts)]
  return least === most ? `${least} rounds` : `${least} to ${most} rounds`
}

/** The largest share of a core that the load process used. */
export function loadShareOf(results: readonly Result[]): number {
  return Math.max(
    0,
    ...results.flatMap(({ series }) => series.map(({ samples }) => spreadOf(samples.map(s => s.loadShare)).median)),
  )
}

function short(value: number): string {
  if (Math.abs(value) >= 1000) return whole(value)
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2)
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en')
}
