import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, relative } from 'node:path'
import type { run } from 'node:test'

type TestEvents = ReturnType<typeof run>

/** Collects the duration of each file and each test. */
export class Durations {
  readonly #msOfFiles = new Map<string, number>()
  readonly #tests: Timed[] = []

  constructor(events: TestEvents) {
    for (const outcome of ['test:pass', 'test:fail']) events.on(outcome, (data: Finished) => this.#add(data))
  }

  #add({ name, nesting, details, file: path = '' }: Finished): void {
    const file = relative(process.cwd(), path)
    const ms = details.duration_ms
    if (nesting === 0) this.#msOfFiles.set(file, (this.#msOfFiles.get(file) ?? 0) + ms)
    if (details.type !== 'suite') this.#tests.push({ name: `${file}: ${name}`, ms })
  }

  /** The durations of files in an earlier run, in milliseconds. */
  static of(path: string): ReadonlyMap<string, number> {
    try {
      return new Map(Object.entries(JSON.parse(readFileSync(path, 'utf8'))))
    } catch {
      return new Map() // the first run
    }
  }

  save(path: string): void {
    mkdirSync(dirname(path), { recursive: true })
    const inOrder = [...this.#msOfFiles].sort().map(([file, ms]) => [file, Math.round(ms / 100) * 100])
    writeFileSync(path, `${JSON.stringify(Object.fromEntries(inOrder), null, 2)}\n`)
  }

  /** The duration of each file, the slowest first, and the slowest tests. */
  report(): string {
    const files = Array.from(this.#msOfFiles, ([name, ms]) => ({ name, ms }))
    return `\nSeconds per file:\n${linesOf(files)}\nThe ten slowest tests:\n${linesOf(this.#tests, 10)}`
  }
}

interface Finished {
  readonly name: string
  readonly nesting: number
  readonly file?: string
  readonly details: { readonly duration_ms: number; readonly type?: string }
}

interface Timed {
  readonly name: string
  readonly ms: number
}

function linesOf(timed: readonly Timed[], most = timed.length): string {
  const slowestFirst = timed.toSorted((a, b) => b.ms - a.ms).slice(0, most)
  return slowestFirst.map(({ name, ms }) => `${(ms / 1000).toFixed(1).padStart(7)}  ${name}\n`).join('')
}

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
