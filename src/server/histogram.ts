import type { Metric, Registry } from 'prom-client'

export type Labels = Readonly<Record<string, string | number>>

/**
 * A histogram for code that every request runs. The histogram of prom-client hashes and checks the labels at each
 * observation, which costs more than the code it measures. This one finds the series by a key and uses prom-client only
 * for the output.
 */
export class Histogram {
  readonly name: string
  readonly help: string
  readonly type = 'histogram'
  readonly #bounds: readonly number[]
  readonly #series = new Map<string, Series>()

  /** Without labels there is one series, which exists from the start. */
  constructor(registry: Registry, name: string, help: string, bounds: readonly number[], labelled = false) {
    this.name = name
    this.help = help
    this.#bounds = bounds
    if (!labelled) this.#begin('', {})
    registry.registerMetric(this as unknown as Metric)
  }

  /** `labelsOf` is called once per key, so the same key must always mean the same labels. */
  observe(value: number, key = '', labelsOf: () => Labels = noLabels): void {
    const series = this.#series.get(key) ?? this.#begin(key, labelsOf())
    const bucket = this.#bounds.findIndex(bound => value <= bound)
    const index = bucket < 0 ? this.#bounds.length : bucket
    series.counts[index] = (series.counts[index] ?? 0) + 1
    series.sum += value
  }

  #begin(key: string, labels: Labels): Series {
    const series = { labels, counts: new Float64Array(this.#bounds.length + 1), sum: 0 }
    this.#series.set(key, series)
    return series
  }

  get(): object {
    const { name, help, type } = this
    return {
      name,
      help,
      type,
      aggregator: 'sum',
      values: [...this.#series.values()].flatMap(each => this.#values(each)),
    }
  }

  #values({ labels, counts, sum }: Series): object[] {
    let count = 0
    const buckets = [...this.#bounds, '+Inf'].map((le, index) => {
      count += counts[index] ?? 0
      return { metricName: `${this.name}_bucket`, labels: { le, ...labels }, value: count }
    })
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, labels, value: sum },
      { metricName: `${this.name}_count`, labels, value: count },
    ]
  }
}

interface Series {
  readonly labels: Labels
  readonly counts: Float64Array
  sum: number
}

function noLabels(): Labels {
  return {}
}
