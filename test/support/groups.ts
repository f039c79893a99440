/** Divides files into groups that take about as long, by the time that each file took before. */
export function groupsOf(
  files: readonly string[],
  count: number,
  msOf: ReadonlyMap<string, number>,
): readonly (readonly string[])[] {
  const groups = Array.from({ length: count }, () => ({ files: [] as string[], ms: 0 }))
  const timed = files.map(file => ({ file, ms: msOf.get(file) ?? usualMs }))
  // The longest first, each into the group that has the least so far.
  for (const { file, ms } of timed.sort((one, other) => other.ms - one.ms)) {
    const [least] = groups.toSorted((one, other) => one.ms - other.ms)
    least?.files.push(file)
    if (least) least.ms += ms
  }
  return groups.map(group => group.files)
}

/** For a file that was not measured yet. */
const usualMs = 1000
