import { relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'

/** A reporter that prints the duration of each file, the slowest first, and the slowest tests. */
export default async function* durations(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const msOfFiles = new Map<string, number>()
  const tests: Timed[] = []
  for await (const event of events) {
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue
    const { name, nesting, details } = event.data
    const file = relative(process.cwd(), event.data.file ?? '')
    const ms = details.duration_ms
    if (nesting === 0) msOfFiles.set(file, (msOfFiles.get(file) ?? 0) + ms)
    if (details.type !== 'suite') tests.push({ name: `${file}: ${name}`, ms })
  }
  const files = Array.from(msOfFiles, ([name, ms]) => ({ name, ms }))
  yield `\nSeconds per file:\n${linesOf(files)}\nThe ten slowest tests:\n${linesOf(tests, 10)}`
}

interface Timed {
  readonly name: string
  readonly ms: number
}

function linesOf(timed: readonly Timed[], most = timed.length): string {
  const slowestFirst = timed.toSorted((a, b) => b.ms - a.ms).slice(0, most)
  return slowestFirst.map(({ name, ms }) => `${(ms / 1000).toFixed(1).padStart(7)}  ${name}\n`).join('')
}
