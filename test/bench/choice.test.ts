import assert from 'node:assert/strict'
import { test } from 'node:test'
import { choiceOf } from '../../bench/choice.ts'
import { isUncertain } from '../../bench/core/measure.ts'
import type { Sample, Series } from '../../bench/core/model.ts'

const cases = [
  { name: 'nested', contenders: ['Duet', 'Apollo Server', 'Mercurius'] },
  { name: 'nested-shared', contenders: ['Duet', 'Apollo Server'] },
  { name: 'growth-sqlite-point', contenders: ['1 thousand posts', '1 million posts'] },
]

test('a run measures the cases and servers that the command line names, and no others', () => {
  const isWanted = choiceOf(cases, 'nested,growth-*', 'apollo,million')
  assert.equal(isWanted('nested', 'Apollo Server'), true)
  assert.equal(isWanted('nested', 'Mercurius'), false)
  assert.equal(isWanted('nested-shared', 'Apollo Server'), false)
  assert.equal(isWanted('growth-sqlite-point', '1 million posts'), true)
})

test('a run without names measures everything', () => {
  const isWanted = choiceOf(cases, undefined, undefined)
  for (const { name, contenders } of cases) for (const each of contenders) assert.equal(isWanted(name, each), true)
})

test('a name that is none is refused with a list of those that are', () => {
  assert.throws(() => choiceOf(cases, 'nestd', undefined), /No case is called nestd\. There are: nested nested-shared/)
  assert.throws(() => choiceOf(cases, undefined, 'apolo'), /No server is called apolo\. There are: Duet, Apollo Server/)
})

test('a case gets more rounds while its ratio varies, and none when it does not', () => {
  const series = (name: string, costs: readonly number[]): Series => ({
    name,
    samples: costs.map(cpu => ({ cpu, databaseCpu: 0 }) as Sample),
  })
  const base = series('Duet', [100, 101, 100])
  assert.equal(isUncertain([base, series('Express', [200, 203, 201])]), false)
  assert.equal(isUncertain([base, series('Express', [200, 260, 180])]), true)
  assert.equal(isUncertain([series('Duet', [100]), series('Express', [200])]), true)
})
