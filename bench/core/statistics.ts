/** The middle of the values, and the least and the greatest of them. */
export interface Spread {
  readonly median: number
  readonly low: number
  readonly high: number
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const [low = Number.NaN, high = Number.NaN] = [sorted[0], sorted.at(-1)]
  const upper = sorted[sorted.length >> 1] ?? Number.NaN
  const lower = sorted[(sorted.length - 1) >> 1] ?? Number.NaN
  return { median: (lower + upper) / 2, low, high }
}

/** The ratios of two series, round by round: what both rounds have in common drops out. */
export function ratiosOf(values: readonly number[], base: readonly number[]): Spread {
  return spreadOf(quotientsOf(values, base))
}

export function quotientsOf(values: readonly number[], base: readonly number[]): readonly number[] {
  return values.map((value, round) => value / (base[round] ?? Number.NaN))
}

/** The standard error of the mean, as a share of the mean. */
export function uncertaintyOf(values: readonly number[]): number {
  const count = values.length
  if (count < 2) return Number.POSITIVE_INFINITY
  const mean = values.reduce((sum, value) => sum + value, 0) / count
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1)
  return Math.sqrt(variance / count) / mean
}
