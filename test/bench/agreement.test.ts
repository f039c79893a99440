import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Result, Sample } from '../../bench/core/model.ts'
import { agreementOf, runOn } from '../../bench/report/agreement.ts'
import { documentOf } from '../../bench/report/markdown.ts'
import { rowsOf } from '../../bench/report/ratios.ts'

const page = (express: string, go: string) => `# Benchmarks

Measured on 2026-01-02:

## HTTP

| Case | What | Duet | Express | Go |
|---|---|---|---|---|
| \`rest-point\` | read one user | 90.5 µs, 11,020/s | ${express} | ${go} |
|  | the database's CPU | 9.5 µs | 7.00 (6.00–8.00) | – |

## GraphQL

| Case | What | Duet | Apollo Server |
|---|---|---|---|
| \`nested\` | ten posts | 338 µs, 3,249/s | 3.00 (2.90–3.10) |

## Compared with the run before

The others: \`rest-create\`, Fastify: 1.91 (1.84–1.93), now 2.11 (2.02–2.36).
`

const express = '2.28 (1.56–2.40)'
const go = '0.83 (0.65–0.88)'

function run(...ratios: readonly [express: string, go: string]) {
  const read = runOn(page(...ratios))
  assert.ok(read)
  return read
}

test('the ratios of CPU of an earlier run are read from its page, and no other figures', () => {
  const { date, cases } = run(express, go)
  assert.equal(date, '2026-01-02')
  assert.deepEqual(
    [...cases].map(([name, ratios]) => [name, [...ratios]]),
    [
      [
        'rest-point',
        [
          ['Express', { median: 2.28, low: 1.56, high: 2.4 }],
          ['Go', { median: 0.83, low: 0.65, high: 0.88 }],
        ],
      ],
      ['nested', [['Apollo Server', { median: 3, low: 2.9, high: 3.1 }]]],
    ],
  )
  assert.equal(runOn('# Something else'), undefined)
})

test('the page that a run writes is read back, and has the measure that each case is about', () => {
  const sample = (cpu: number, perSecond: number): Sample => ({
    ...{ cpu, perSecond, databaseCpu: 0 },
    ...{ p50: 1, p99: 2, memory: 1e6, loadShare: 0.5 },
  })
  const result = (name: string): Result => ({
    name,
    title: `REST: ${name}`,
    note: 'A note.',
    series: [
      { name: 'Duet', samples: [sample(100, 9000), sample(110, 8000)] },
      { name: 'Express', samples: [sample(200, 900), sample(330, 800)] },
    ],
  })
  const rows = ['rest-point', 'payment-slow-disk'].flatMap(name => rowsOf(result(name)))
  const text = documentOf({ date: '2026-01-02', about: ['a machine'] }, rows, [])
  const read = runOn(text)
  const ratios = new Map([['Express', { median: 2.5, low: 2, high: 3 }]])
  assert.deepEqual(read?.cases.get('rest-point'), ratios)
  assert.deepEqual(read?.cases.get('payment-slow-disk'), ratios)
  assert.match(text, /^\| {2}\| requests per second \| 8,500 \| 0\.10 \(0\.10–0\.10\) \|$/m)
  assert.match(text, /!\[REST: rest-point\]\(images\/bench-rest-point\.svg\)/)
})

test('two runs agree if the order of servers is the same and all spreads overlap', () => {
  const now = run('2.45 (2.40–2.60)', go)
  const text = agreementOf(run(express, go), now).join(' ')
  assert.match(text, /on 2026-01-02\. Servers stand in the same order in 2 of 2 cases/)
  assert.match(text, /Of 3 ratios of CPU 3 agree: the spreads of both runs overlap\.$/)
})

test('a ratio outside the spread of the other run is listed with both figures', () => {
  const now = run('2.60 (2.41–2.70)', go)
  const lines = agreementOf(run(express, go), now)
  assert.match(lines.join(' '), /same order in 2 of 2 .* 3 ratios of CPU 2 agree/)
  assert.equal(lines.at(-1), 'The others: `rest-point`, Express: 2.28 (1.56–2.40), now 2.60 (2.41–2.70).')
})

test('servers that have changed places count as another order, unless their spreads overlap in one of the runs', () => {
  const faster = '1.30 (1.20–1.40)'
  assert.match(agreementOf(run(express, go), run(express, faster)).join(' '), /same order in 1 of 2 cases/)
  const unsure = '1.30 (0.99–1.40)'
  assert.match(agreementOf(run(express, go), run(express, unsure)).join(' '), /same order in 2 of 2 cases/)
})
