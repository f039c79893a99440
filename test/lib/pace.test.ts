import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Pace } from '../../src/lib/pace.ts'

test('others are served for some milliseconds after each long part, and for a turn after each short one', async t => {
  const now = performance.now.bind(performance)
  let worked = 0
  t.mock.method(performance, 'now', () => worked)
  const pace = new Pace()
  for (const part of [0, 100, 0, 100, 0]) {
    worked += part
    const begun = now()
    const outcomes = [pace.rest(), turn().then(() => turn('late'))]
    if (part === 0) assert.equal(await Promise.race(outcomes), undefined)
    await Promise.all(outcomes)
    if (part > 0) assert.ok(now() - begun >= 2, `${now() - begun} ms after ${part}`)
  }
})
