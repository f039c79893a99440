import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Janitor } from '../../src/lib/janitor.ts'

const silent = { trouble() {} }

describe('Janitor', () => {
  it('rounds do not overlap: a call during a round waits for the end of that round', async () => {
    const gates = [Promise.withResolvers<number>(), Promise.withResolvers<number>()]
    let asked = 0
    await using upkeep = new Janitor(() => gates[asked++]?.promise ?? Promise.resolve(0), silent)
    const rounds = [upkeep.run(), upkeep.run()]
    gates[0]?.resolve(1)
    await turn()
    rounds.push(upkeep.run())
    assert.equal(asked, 2)
    gates[1]?.resolve(0)
    await Promise.all(rounds)
    assert.equal(asked, 2)
    await upkeep.run()
    assert.equal(asked, 3)
  })

  it('a round deletes batch by batch until nothing is left, an error is reported and ends it, and the next round tries again', async () => {
    const reported: unknown[] = []
    const error = new Error('no database')
    const steps = [() => 5, () => Promise.reject(error), () => 3, () => 7, () => 0]
    const observer = { trouble: (message: string, cause: unknown) => reported.push([message, cause]) }
    await using upkeep = new Janitor(async () => (await steps.shift()?.()) ?? 0, observer)
    await upkeep.run()
    assert.deepEqual(reported, [['Expired rows could not be deleted', error]])
    assert.equal(steps.length, 3)
    await upkeep.run()
    assert.deepEqual([steps.length, reported.length], [0, 1])
  })

  it('disposing it waits for the running batch and starts no other', async () => {
    const gate = Promise.withResolvers<number>()
    let asked = 0
    const upkeep = new Janitor(() => {
      asked++
      return gate.promise
    }, silent)
    const round = upkeep.run()
    const ended: string[] = []
    const disposal = upkeep[Symbol.asyncDispose]().then(() => ended.push('disposal'))
    await turn()
    assert.deepEqual(ended, [])
    gate.resolve(200)
    await Promise.all([round, disposal])
    assert.equal(asked, 1)
    await upkeep.run()
    assert.equal(asked, 1)
  })
})
