/**
 * The type with the highest quality in an `Accept` header; the first one if there is no header. In a tie, a type that
 * the header names takes precedence over one that only a wildcard includes.
 */
export function preferredType<Type extends string>(
  accept: string | undefined,
  types: readonly Type[],
): Type | undefined {
  if (accept === undefined || accept === '*/*' || accept.length > longest) return types[0]
  const ranges = accept.split(',').map(rangeOf)
  let best: Type | undefined
  let rank: Rank = { quality: 0, precision: 0 }
  for (const type of types) {
    const own = rankOf(type, ranges)
    const isBetter = own.quality === rank.quality ? own.precision > rank.precision : own.quality > rank.quality
    if (own.quality > 0 && isBetter) [best, rank] = [type, own]
  }
  return best
}

/** Nobody needs more characters, and they take time. */
const longest = 2048

interface Range {
  readonly type: string
  readonly quality: number
}

function rangeOf(text: string): Range {
  const [type = '', ...parameters] = text.split(';').map(part => part.trim().toLowerCase())
  const quality = parameters.find(parameter => parameter.startsWith('q='))
  return { type, quality: quality === undefined ? 1 : Number(quality.slice(2)) || 0 }
}

interface Rank {
  readonly quality: number
  /** How exactly the header names the type. */
  readonly precision: number
}

// An exact type takes precedence over a range that includes it.
function rankOf(type: string, ranges: readonly Range[]): Rank {
  const patterns = ['*/*', `${type.split('/')[0]}/*`, type]
  for (let precision = patterns.length - 1; precision >= 0; precision--) {
    const range = ranges.find(each => each.type === patterns[precision])
    if (range !== undefined) return { quality: range.quality, precision }
  }
  return { quality: 0, precision: 0 }
}
