import { relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'

/** A reporter that tells how long each file took, the slowest first, and names the slowest tests. */
export default async function* durations(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const files: Timed[] = []
  const tests: Timed[] = []
  for await (const event of events) {
    if (event.type === 'test:summary' && event.data.file !== undefined) {
      files.push({ name: pathOf(event.data.file), ms: event.data.duration_ms })
    } else if ((event.type === 'test:pass' || event.type === 'test:fail') && event.data.details.type !== 'suite') {
      const { file = '', name, details } = event.data
      tests.push({ name: `${pathOf(file)}: ${name}`, ms: details.duration_ms })
    }
  }
  yield `\nSeconds per file:\n${linesOf(files)}\nThe ten slowest tests:\n${linesOf(tests, 10)}`
}

interface Timed {
  readonly name: string
  readonly ms: number
}

function pathOf(file: string): string {
  return relative(process.cwd(), file)
}

function linesOf(timed: readonly Timed[], most = timed.length): string {
  const slowestFirst = timed.toSorted((a, b) => b.ms - a.ms).slice(0, most)
  return slowestFirst.map(({ name, ms }) => `${(ms / 1000).toFixed(1).padStart(7)}  ${name}\n`).join('')
}
