import type { Spread } from '../core/statistics.ts'

/** What one run measured: for each case the ratio of CPU of each server to the first. */
export interface Run {
  readonly date: string
  readonly cases: ReadonlyMap<string, ReadonlyMap<string, Spread>>
}

/** Reads the date and the ratios from a page that an earlier run wrote. */
export function runOn(page: string): Run | undefined {
  const date = /^Measured on (\S+):$/m.exec(page)?.[1]
  if (date === undefined) return undefined
  const cases = new Map<string, Map<string, Spread>>()
  for (const [table] of page.matchAll(/^\| Case \| What \|.*\n(?:\|.*\n)+/gm)) {
    const [head = [], , ...rows] = table.split('\n').map(line => line.split(' | '))
    for (const [name = '', , , ...cells] of rows) {
      const known = /^\| `(.+)`$/.exec(name)?.[1]
      if (known === undefined) continue
      const ratios = cells.flatMap((cell, at): [string, Spread][] => {
        const [, median, low, high] = /^([\d.]+) \(([\d.]+)–([\d.]+)\)/.exec(cell) ?? []
        const server = head[at + 3]?.replace(/ \|$/, '') ?? ''
        return median === undefined ? [] : [[server, { median: Number(median), low: Number(low), high: Number(high) }]]
      })
      cases.set(known, new Map(ratios))
    }
  }
  return { date, cases }
}

/** The page's lines about how well two runs agree, in the order of servers and in their ratios. */
export function agreementOf(before: Run, now: Run): readonly string[] {
  const shared = [...now.cases].flatMap(([name, ratios]) => {
    const earlier = before.cases.get(name)
    return earlier === undefined ? [] : [{ name, earlier, ratios }]
  })
  const pairs = shared.flatMap(({ name, earlier, ratios }) =>
    [...ratios].flatMap(([server, ratio]) => {
      const old = earlier.get(server)
      return old === undefined ? [] : [{ name, server, old, ratio, agree: overlap(old, ratio) }]
    }),
  )
  const swapped = shared.filter(({ earlier, ratios }) => !isSameOrder(earlier, ratios))
  const apart = pairs.filter(({ agree }) => !agree)
  const shown = ({ median, low, high }: Spread) => `${median.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`
  const changed = ({ name, server, old, ratio }: (typeof pairs)[number]) =>
    `\`${name}\`, ${server}: ${shown(old)}, now ${shown(ratio)}`
  return [
    `The run before this one was on ${before.date}. Servers stand in the same order in ${shared.length - swapped.length} of`,
    `${shared.length} cases, where two servers whose spreads overlap count as equal. Of ${pairs.length} ratios of CPU`,
    `${pairs.length - apart.length} agree: the spreads of both runs overlap.`,
    ...(apart.length === 0 ? [] : [`The others: ${apart.map(changed).join('; ')}.`]),
  ]
}

const base: Spread = { median: 1, low: 1, high: 1 }

function isSameOrder(before: ReadonlyMap<string, Spread>, now: ReadonlyMap<string, Spread>): boolean {
  const servers = ['', ...[...now.keys()].filter(server => before.has(server))]
  const ratio = (run: ReadonlyMap<string, Spread>, server: string) => run.get(server) ?? base
  return servers.every((one, at) =>
    servers.slice(at + 1).every(other => {
      const runs = [before, now].map(run => [ratio(run, one), ratio(run, other)] as const)
      if (runs.some(([a, b]) => overlap(a, b))) return true
      const [then, today] = runs.map(([a, b]) => a.median < b.median)
      return then === today
    }),
  )
}

function overlap(one: Spread, other: Spread): boolean {
  return one.low <= other.high && other.low <= one.high
}
