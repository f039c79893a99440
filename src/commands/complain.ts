/** Tells the operator in one line what is wrong. Returns the exit code. */
export function complain(line: string): number {
  console.error(`duet: ${line}`)
  return 1
}
