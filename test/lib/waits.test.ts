import assert from 'node:assert/strict'
import { test } from 'node:test'
import { beginOperation, during, enterConnection, Waits, waitsNow } from '../../src/lib/waits.ts'

test('work that no operation waits for has no waits, also while its connection goes on with another operation', async () => {
  enterConnection()
  const work = during(undefined, async () => {
    await new Promise(setImmediate)
    return waitsNow()
  })
  beginOperation(new Waits())
  assert.equal(await work, undefined)
})
