/** Divides files into groups that take about as long, by the milliseconds that each file is expected to take. */
export function groupsOf(msOf: ReadonlyMap<string, number>, count: number): readonly (readonly string[])[] {
  const groups = Array.from({ length: count }, () => ({ files: [] as string[], ms: 0 }))
  // The longest first, each into the group that has the least so far.
  for (const [file, ms] of [...msOf].sort(([, one], [, other]) => other - one)) {
    const [least] = groups.toSorted((one, other) => one.ms - other.ms)
    least?.files.push(file)
    if (least) least.ms += ms
  }
  return groups.map(group => group.files)
}
