/** Counts the results of the cases. */
export class Tally {
  readonly #outcomes = new Map<string, number>()
  readonly #succeeded = new Set<string>()
  successes = 0

  note(name: string, outcome: string): void {
    this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1)
    if (!/^(2\d\d|answered)$/.test(outcome)) return
    this.successes++
    this.#succeeded.add(name)
  }

  /** The names without a successful case. */
  without(names: readonly string[]): readonly string[] {
    return names.filter(name => !this.#succeeded.has(name))
  }

  toString(): string {
    const sorted = [...this.#outcomes].sort(([, one], [, other]) => other - one)
    return sorted.map(([outcome, count]) => `${count} × ${outcome}`).join(', ')
  }
}
