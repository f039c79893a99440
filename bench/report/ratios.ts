import type { Result, Sample } from '../core/model.ts'
import { type Spread, spreadOf } from '../core/statistics.ts'
import { ratioOf } from '../goals.ts'
import { columnsOf } from './table.ts'

/** A line of the page: what the first contender of a case takes, and how many times as much each of the others. */
export interface Row {
  readonly name: string
  readonly title: string
  readonly note?: string | undefined
  readonly base: string
  /** The measure, where it is not the CPU of the server. */
  readonly measure?: string
  readonly own: string
  readonly ratios: ReadonlyMap<string, Spread>
}

/** The chapters of the page, and the cases in each. A case has a chart if it stands for those around it. */
const chapters: readonly { readonly title: string; readonly cases: RegExp; readonly charts: readonly string[] }[] = [
  {
    title: 'HTTP',
    cases: /^(rest|payment|token)-/,
    charts: ['rest-point', 'payment-first', 'payment-slow-disk'],
  },
  {
    title: 'GraphQL',
    cases: /^(graphql|nested|wide|like|refusal)/,
    charts: ['nested', 'nested-shared', 'like'],
  },
  { title: 'GraphQL on PostgreSQL', cases: /^postgres-/, charts: ['postgres-nested'] },
  {
    title: 'Subscriptions',
    cases: /^subscriptions-/,
    charts: ['subscriptions-10000-small', 'subscriptions-10000-nested'],
  },
  { title: 'Growth: the same requests on more data', cases: /^growth-/, charts: [] },
  { title: 'Pages: ten posts with authors and comments', cases: /^pages-/, charts: [] },
  { title: 'Serving threads', cases: /^threads-/, charts: [] },
]

/** The names of the cases that have a chart. */
export const charted: readonly string[] = chapters.flatMap(({ charts }) => charts)

/** Cases about how much is done at the same time: requests per second are told too. */
const aboutPace = /^(payment-slow-disk|threads-)/

/** The lines of a case: the CPU of the server, and what else it is about. */
export function rowsOf(result: Result): readonly Row[] {
  const { name, title, note, series } = result
  const base = series[0]?.name ?? ''
  const columns = columnsOf(result)
  const shown = (measure: keyof Sample) => {
    const column = columns.find(each => each.measure === measure)
    return column?.shown(spreadOf(series[0]?.samples.map(sample => sample[measure]) ?? []).median) ?? ''
  }
  const ratios = (measure: keyof Sample) =>
    new Map(
      series.slice(1).flatMap(contender => {
        const ratio = ratioOf(result, contender.name, measure)
        const isMeasured = contender.samples.some(sample => sample[measure] > 0)
        return ratio !== undefined && isMeasured ? [[contender.name, ratio] as const] : []
      }),
    )
  const own = `${shown('cpu')}, ${shown('perSecond')}/s`
  const also = (measure: keyof Sample, what: string): Row => ({
    ...{ name, title, base, measure: what },
    own: shown(measure),
    ratios: ratios(measure),
  })
  return [
    { name, title, note, base, own, ratios: ratios('cpu') },
    ...(columns.some(({ measure }) => measure === 'databaseCpu') ? [also('databaseCpu', "the database's CPU")] : []),
    ...(aboutPace.test(name) ? [also('perSecond', 'requests per second')] : []),
  ]
}

/** The chapters as Markdown: a table of all cases, their notes, and some charts. */
export function chaptersOf(rows: readonly Row[]): readonly string[] {
  return chapters.flatMap(({ title, cases, charts }) => {
    const own = rows.filter(({ name }) => cases.test(name))
    if (own.length === 0) return []
    const names = new Set(own.map(({ name }) => name))
    const notes = own.flatMap(({ name, note }) => (note === undefined ? [] : [`- \`${name}\`: ${note}`]))
    return [
      '',
      `## ${title}`,
      '',
      ...tableOf(own),
      ...(notes.length === 0 ? [] : ['', ...notes]),
      ...charts.flatMap(name => (names.has(name) ? ['', `![${titleOf(own, name)}](images/bench-${name}.svg)`] : [])),
    ]
  })
}

function titleOf(rows: readonly Row[], name: string): string {
  return rows.find(row => row.name === name)?.title ?? name
}

function tableOf(rows: readonly Row[]): readonly string[] {
  const contenders = [...new Set(rows.flatMap(({ ratios }) => [...ratios.keys()]))]
  return [
    `| Case | What | ${rows[0]?.base} | ${contenders.join(' | ')} |`,
    `|---|---|---|${contenders.map(() => '---|').join('')}`,
    ...rows.map(({ name, title, measure, own, ratios }) => {
      const head =
        measure === undefined ? `\`${name}\` | ${title.replace(/^(?:[^:]*: |\w+, growth\. )/, '')}` : ` | ${measure}`
      const cells = contenders.map(contender => cellOf(ratios.get(contender)))
      return `| ${head} | ${own} | ${cells.join(' | ')} |`
    }),
  ]
}

function cellOf(ratio: Spread | undefined): string {
  if (ratio === undefined || !Number.isFinite(ratio.median)) return '–'
  return `${ratio.median.toFixed(2)} (${ratio.low.toFixed(2)}–${ratio.high.toFixed(2)})`
}
