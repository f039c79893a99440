/** The type with the highest quality in an `Accept` header; the first one if there is no header or a tie. */
export function preferredType<Type extends string>(
  accept: string | undefined,
  types: readonly Type[],
): Type | undefined {
  if (accept === undefined || accept === '*/*') return types[0]
  const ranges = accept.split(',').map(rangeOf)
  let [best, bestQuality]: [Type | undefined, number] = [undefined, 0]
  for (const type of types) {
    const quality = qualityOf(type, ranges)
    if (quality > bestQuality) [best, bestQuality] = [type, quality]
  }
  return best
}

interface Range {
  readonly type: string
  readonly quality: number
}

function rangeOf(text: string): Range {
  const [type = '', ...parameters] = text.split(';').map(part => part.trim().toLowerCase())
  const quality = parameters.find(parameter => parameter.startsWith('q='))
  return { type, quality: quality === undefined ? 1 : Number(quality.slice(2)) || 0 }
}

// An exact type takes precedence over a range that includes it.
function qualityOf(type: string, ranges: readonly Range[]): number {
  for (const pattern of [type, `${type.split('/')[0]}/*`, '*/*']) {
    const range = ranges.find(each => each.type === pattern)
    if (range !== undefined) return range.quality
  }
  return 0
}
