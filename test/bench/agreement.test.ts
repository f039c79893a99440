import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agreementOf, runOn } from '../../bench/report/agreement.ts'

const page = (...rows: readonly string[]) => `# Benchmarks

Measured on 2026-01-02:

## Goals

| Goal | Reached | |
|---|---|---|
| Apollo at least 8 × Duet | 9.00 (8.00–10.00) | met |

### One user

Case \`rest-point\`, 3 rounds.

| | server CPU per request | requests/s |
|---|---|---|
| Duet | 90.5 µs | 11,020 |
${rows.join('\n')}

### Other

Case \`nested\`, 3 rounds.

| | server CPU per request | requests/s |
|---|---|---|
| Duet | 338 µs | 3,249 |
| Apollo Server | 1,022 µs · 3.00 × (2.90–3.10) | 1,000 · 0.30 × (0.20–0.40) |
`

const express = '| Express | 203 µs · 2.28 × (1.56–2.40) | 5,283 · 0.48 × (0.44–0.61) |'
const go = '| Go | 76.7 µs · 0.83 × (0.65–0.88) | 18,834 · 1.75 × (1.59–2.10) |'

function run(...rows: readonly string[]) {
  const read = runOn(page(...rows))
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

test('two runs agree if the order of servers is the same and all spreads overlap', () => {
  const now = run('| Express | 190 µs · 2.45 × (2.40–2.60) | 1 |', go)
  const text = agreementOf(run(express, go), now).join(' ')
  assert.match(text, /on 2026-01-02\. Servers stand in the same order in 2 of 2 cases/)
  assert.match(text, /Of 3 ratios of CPU 3 agree: the spreads of both runs overlap\.$/)
})

test('a ratio outside the spread of the other run is listed with both figures', () => {
  const now = run('| Express | 190 µs · 2.60 × (2.41–2.70) | 1 |', go)
  const lines = agreementOf(run(express, go), now)
  assert.match(lines.join(' '), /same order in 2 of 2 .* 3 ratios of CPU 2 agree/)
  assert.equal(lines.at(-1), '| `rest-point` | Express | 2.28 (1.56–2.40) | 2.60 (2.41–2.70) |')
})

test('servers that have changed places count as another order, unless their spreads overlap in one of the runs', () => {
  const faster = '| Go | 130 µs · 1.30 × (1.20–1.40) | 1 |'
  assert.match(agreementOf(run(express, go), run(express, faster)).join(' '), /same order in 1 of 2 cases/)
  const unsure = '| Go | 130 µs · 1.30 × (0.99–1.40) | 1 |'
  assert.match(agreementOf(run(express, go), run(express, unsure)).join(' '), /same order in 2 of 2 cases/)
})
