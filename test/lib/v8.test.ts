import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keepTickShape } from '../../src/lib/v8.ts'

test("what is kept is the object that Node creates for a nextTick, so that V8 doesn't forget its shape", async () => {
  const tick = await keepTickShape()
  assert.ok('callback' in tick && typeof tick.callback === 'function', String(Object.keys(tick)))
})
