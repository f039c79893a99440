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
  const ranks = types.map(type => rankOf(type, ranges))
  const most = Math.max(...ranks)
  return most > 0 ? types[ranks.indexOf(most)] : undefined
}

/** Nobody needs more characters, and they take time. */
const longest = 2048

type Range = readonly [type: string, quality: number]

function rangeOf(text: string): Range {
  const [type = '', ...parameters] = text.split(';').map(part => part.trim().toLowerCase())
  const quality = parameters.find(parameter => parameter.startsWith('q='))
  return [type, quality === undefined ? 1 : Number(quality.slice(2)) || 0]
}

/** The quality of the range that names the type most exactly. Between equal qualities, that exactness decides. */
function rankOf(type: string, ranges: readonly Range[]): number {
  for (const [distance, pattern] of [type, `${type.split('/')[0]}/*`, '*/*'].entries()) {
    const range = ranges.find(([name]) => name === pattern)
    if (range !== undefined) return range[1] === 0 ? 0 : range[1] - distance / 1e6
  }
  return 0
}
