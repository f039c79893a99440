/** Prints a one-line error for the operator. Returns the exit code. */
export function complain(line: string): number {
  console.error(`duet: ${line}`)
  return 1
}
