import type { Metric, Registry } from 'prom-client'

interface Series {
  readonly labels: Readonly<Record<string, string | number>>
  readonly counts: Float64Array
  sum: number
}

/**
 * A histogram that every request may use. That of prom-client checks and hashes the labels of each value, which takes 3 % of the CPU
 * of a small request. This one finds its series by a key, and prom-client only writes what it has counted.
 */
export class Histogram {
  readonly name: string
  readonly help: string
  readonly #bounds: readonly number[]
  readonly #series = new Map<string, Series>()

  constructor(registry: Registry, name: string, help: string, bounds: readonly number[]) {
    this.name = name
    this.help = help
    this.#bounds = bounds
    registry.registerMetric(this as unknown as Metric)
  }

  /** Without labels there is one series, which exists before its first value. */
  unlabelled(): (value: number) => void {
    const series = this.#begin('', {})
    return value => this.#add(series, value)
  }

  /**
   * The same key must always mean the same labels. If there are too many series, that of the `other` labels takes the
   * place of a new one.
   */
  observe(value: number, key: string, labels: (isOther: boolean) => Series['labels']): void {
    this.#add(this.#series.get(key) ?? this.#next(key, labels), value)
  }

  #next(key: string, labels: (isOther: boolean) => Series['labels']): Series {
    if (this.#series.size < mostSeries) return this.#begin(key, labels(false))
    const other = labels(true)
    const otherKey = JSON.stringify(other)
    return this.#series.get(otherKey) ?? this.#begin(otherKey, other)
  }

  #begin(key: string, labels: Series['labels']): Series {
    const series = { labels, counts: new Float64Array(this.#bounds.length + 1), sum: 0 }
    this.#series.set(key, series)
    return series
  }

  #add(series: Series, value: number): void {
    let bucket = 0
    for (const bound of this.#bounds) {
      if (value <= bound) break
      bucket++
    }
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1
    series.sum += value
  }

  /** Prom-client calls this at each scrape. */
  get(): object {
    const values = [...this.#series.values()].flatMap(series => this.#valuesOf(series))
    return { name: this.name, help: this.help, type: 'histogram', aggregator: 'sum', values }
  }

  #valuesOf({ labels, counts, sum }: Series): readonly object[] {
    let count = 0
    const buckets = [...this.#bounds, '+Inf'].map((le, index) => {
      count += counts[index] ?? 0
      return { metricName: `${this.name}_bucket`, labels: { le, ...labels }, value: count }
    })
    const total = (name: string, value: number) => ({ metricName: `${this.name}_${name}`, labels, value })
    return [...buckets, total('sum', sum), total('count', count)]
  }
}

/** A client can cause thousands by requests that are refused, and each scrape would write them all: 170 ms. */
const mostSeries = 150
