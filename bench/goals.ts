import { duetOnSqlite } from './cases/postgres.ts'
import type { Result, Sample } from './core/model.ts'
import * as names from './core/names.ts'
import { ratiosOf, type Spread } from './core/statistics.ts'

type Measure = 'cpu' | 'whole' | 'perSecond' | 'memory'

/** What Duet is to reach in a case. The ratio is that of the contender to Duet. */
interface Goal {
  readonly case: string
  readonly contender: string
  readonly measure: Measure
  readonly least?: number
  readonly most?: number
}

const cpu = (name: string, contender: string, least: number): Goal => ({ case: name, contender, measure: 'cpu', least })
/** Duet may take so many times as much as the contender. */
const within = (name: string, contender: string, times: number): Goal => cpu(name, contender, 1 / times)
const grown = (name: string): readonly Goal[] =>
  (['sqlite', 'postgres'] as const).flatMap(engine =>
    ['100 thousand posts', '1 million posts'].map(
      size => ({ case: `growth-${engine}-${name}`, contender: size, measure: 'whole', most: 1.2 }) as const,
    ),
  )

export const goals: readonly Goal[] = [
  cpu('nested', names.apollo, 8),
  cpu('nested', names.yoga, 7),
  cpu('nested', names.mercurius, 4.5),
  cpu('nested', names.go, 4.5),
  within('nested', names.bare, 1.2),
  cpu('nested-shared', names.apollo, 20),
  cpu('nested-shared', names.yoga, 20),
  cpu('graphql-point', names.apollo, 5),
  cpu('graphql-point', names.mercurius, 2.5),
  cpu('like', names.apollo, 4),
  cpu('like', names.mercurius, 2.5),
  cpu('rest-point', names.express, 2),
  within('rest-point', names.fastify, 1),
  within('rest-point', names.hono, 1),
  within('rest-point', names.bare, 1),
  cpu('payment-first', names.express, 1.5),
  cpu('payment-first', names.bare, 1.3),
  { case: 'payment-slow-disk', contender: names.express, measure: 'perSecond', most: 1 / 5 },
  { case: 'payment-slow-disk', contender: names.bare, measure: 'perSecond', most: 1 / 5 },
  within('subscriptions-10000-small', names.bareLoop, 1.25),
  ...[names.yoga, names.apollo, names.mercurius].flatMap(peer => [
    cpu('subscriptions-10000-small', peer, 5),
    cpu('subscriptions-10000-nested', peer, 30),
  ]),
  { case: 'postgres-nested', contender: names.postgraphile, measure: 'whole', least: 5 },
  within('postgres-nested', duetOnSqlite, 2),
  ...['rest-point', 'point', 'list', 'nested', 'like'].flatMap(grown),
]

export interface Verdict {
  readonly goal: string
  readonly reached: string
  /** What the bare handler reaches in the place of Duet, where the goal is about another server. */
  readonly ceiling?: string | undefined
  readonly isMet: boolean
}

/** The goals of the cases that were measured, and whether they are met. */
export function verdicts(results: readonly Result[]): readonly Verdict[] {
  const found = goals.flatMap(goal => {
    const result = results.find(({ name }) => name === goal.case)
    const ratio = result && ratioOf(result, goal.contender, goal.measure)
    return result && ratio ? [judge(goal, result, ratio)] : []
  })
  return [...found, ...memoryOfSockets(results)]
}

function judge(goal: Goal, result: Result, ratio: Spread): Verdict {
  const { case: name, contender, measure, least, most } = goal
  const isMet = (least === undefined || ratio.median >= least) && (most === undefined || ratio.median <= most)
  const what = { cpu: 'server CPU', whole: 'CPU with the database', perSecond: 'requests per second', memory: 'memory' }
  const isInverse = (least ?? most ?? 1) <= 1 && !name.startsWith('growth')
  const shown = (value: number) => (isInverse ? 1 / value : value).toFixed(2)
  // A goal such as "at most 1.2 times the bare handler" is said of Duet, the others of the contender.
  const bound = isInverse
    ? measure === 'perSecond'
      ? `Duet at least ${shown(most ?? 1)} × ${contender}`
      : `Duet at most ${shown(least ?? 1)} × ${contender}`
    : most !== undefined
      ? `${contender} at most ${most} × as much as 1 thousand`
      : `${contender} at least ${least} × Duet`
  const [low, high] = isInverse ? [ratio.high, ratio.low] : [ratio.low, ratio.high]
  return {
    goal: `${result.title}: ${bound} (${what[measure]})`,
    reached: `${shown(ratio.median)} (${shown(low)}–${shown(high)})`,
    ceiling: ceilingOf(goal, result),
    isMet,
  }
}

/** How many times as much CPU as the bare handler a server takes. */
function ceilingOf({ contender, measure, least = 0 }: Goal, { series, ...result }: Result): string | undefined {
  const bare = series.find(({ name }) => name === names.bare || name === names.bareLoop)
  if (least <= 1 || bare === undefined) return undefined
  return ratioOf({ ...result, series: [bare, ...series] }, contender, measure)?.median.toFixed(2)
}

/** At most 30 KB for one of ten thousand sockets. */
function memoryOfSockets(results: readonly Result[]): readonly Verdict[] {
  const samples = results.find(({ name }) => name === 'subscriptions-10000-small')?.series[0]?.samples
  if (samples?.[0] === undefined) return []
  const kilobytes = samples[0].memory / 1000
  return [
    {
      goal: 'Subscriptions: at most 30 KB of memory for one idle socket of 10,000',
      reached: `${kilobytes.toFixed(1)} KB`,
      isMet: kilobytes <= 30,
    },
  ]
}

/** The ratio of a contender to the first one of the case, over the rounds. */
export function ratioOf({ series }: Result, contender: string, measure: Measure | keyof Sample): Spread | undefined {
  const [base] = series
  const other = series.find(({ name }) => name === contender)
  if (base === undefined || other === undefined) return undefined
  const values = (samples: readonly Sample[]) =>
    samples.map(sample => (measure === 'whole' ? sample.cpu + sample.databaseCpu : sample[measure]))
  return ratiosOf(values(other.samples), values(base.samples))
}
