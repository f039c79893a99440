import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { AppError } from '../../src/core/errors.ts'
import { FairQueue } from '../../src/core/fair-queue.ts'

/** Named tasks of one client that end when the test ends them. */
class Callers {
  /** All calls that got a slot, in the order in which they got it. */
  readonly started: string[] = []
  readonly refused: string[] = []
  readonly #running = new Map<string, PromiseWithResolvers<void>>()
  readonly #queue: FairQueue

  constructor(atOnce: number, mayWait: number) {
    this.#queue = new FairQueue({ atOnce, mayWait })
  }

  async call(name: string, waitMs?: number): Promise<void> {
    const work = async () => {
      this.started.push(name)
      const end = Promise.withResolvers<void>()
      this.#running.set(name, end)
      await end.promise
    }
    try {
      await this.#queue.run('a client', work, waitMs)
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      assert.equal(error.code, 'unavailable')
      this.refused.push(name)
    }
  }

  get running(): readonly string[] {
    return [...this.#running.keys()]
  }

  async finish(name: string): Promise<void> {
    this.#take(name).resolve()
    await turn()
  }

  async fail(name: string, error: Error): Promise<void> {
    this.#take(name).reject(error)
    await turn()
  }

  #take(name: string): PromiseWithResolvers<void> {
    const end = this.#running.get(name)
    assert.ok(end !== undefined, `${name} is not running`)
    this.#running.delete(name)
    return end
  }
}

describe('A queue with one client', () => {
  it('runs tasks up to the limit at once, and the others in the order of their calls', async () => {
    const callers = new Callers(2, 10)
    const all = ['a', 'b', 'c', 'd', 'e'].map(name => callers.call(name))
    await turn()
    assert.deepEqual(callers.running, ['a', 'b'])
    await callers.finish('b')
    assert.deepEqual(callers.running, ['a', 'c'])
    await callers.finish('a')
    assert.deepEqual(callers.running, ['c', 'd'])
    await callers.finish('d')
    await callers.finish('c')
    assert.deepEqual(callers.running, ['e'])
    await callers.finish('e')
    await Promise.all(all)
    assert.deepEqual(callers.started, ['a', 'b', 'c', 'd', 'e'])
  })

  it('gives a freed slot to the first waiter, not to a newcomer', async () => {
    const callers = new Callers(1, 10)
    const all = [callers.call('a'), callers.call('b')]
    await turn()
    const finished = callers.finish('a')
    all.push(callers.call('late'))
    await finished
    assert.deepEqual(callers.running, ['b'])
    await callers.finish('b')
    await callers.finish('late')
    await Promise.all(all)
  })

  it('rejects a call at once if too many calls wait, and only then', async () => {
    const callers = new Callers(1, 2)
    const all = ['a', 'b', 'c', 'd', 'e'].map(name => callers.call(name))
    await turn()
    assert.deepEqual([callers.running, callers.refused], [['a'], ['d', 'e']])
    await callers.finish('a')
    all.push(callers.call('f'))
    await turn()
    assert.deepEqual(callers.refused, ['d', 'e'], 'there is room for one more waiter')
    for (const name of ['b', 'c', 'f']) await callers.finish(name)
    await Promise.all(all)
  })

  it('has all its slots free after all tasks have finished', async () => {
    const callers = new Callers(2, 10)
    for (let round = 0; round < 3; round++) {
      const names = ['a', 'b', 'c'].map(name => `${name}${round}`)
      const all = names.map(name => callers.call(name))
      await turn()
      assert.deepEqual(callers.running, names.slice(0, 2))
      for (const name of names) await callers.finish(name)
      await Promise.all(all)
    }
  })

  it('passes on the slot of a failed task, and only its caller gets the error', async () => {
    const callers = new Callers(1, 10)
    const failing = callers.call('a')
    const next = callers.call('b')
    await turn()
    const failure = new Error('no database')
    const rejection = assert.rejects(failing, failure)
    await callers.fail('a', failure)
    await rejection
    assert.deepEqual(callers.running, ['b'])
    await callers.finish('b')
    await next
    const last = callers.call('c')
    await turn()
    assert.deepEqual(callers.running, ['c'])
    await callers.finish('c')
    await last
  })

  it('passes on the slot of a task that throws synchronously', async () => {
    const queue = new FairQueue({ atOnce: 1, mayWait: 1 })
    const failure = new Error('a defect')
    const broken = queue.run('a client', () => {
      throw failure
    })
    await assert.rejects(broken, failure)
    let passed = false
    void queue.run('a client', async () => {
      passed = true
    })
    await turn()
    assert.equal(passed, true)
  })
})

describe('A waiting call that reaches its timeout', () => {
  it('is rejected then, not earlier, and its task never runs', async () => {
    await withTime(async pass => {
      const callers = new Callers(1, 10)
      const all = [callers.call('a'), callers.call('b', 100)]
      await pass(99)
      assert.deepEqual(callers.refused, [])
      await pass(1)
      assert.deepEqual(callers.refused, ['b'])
      await callers.finish('a')
      await Promise.all(all)
      assert.deepEqual(callers.started, ['a'])
    })
  })

  it('gets no slot: the slot goes to the next waiting call or stays free', async () => {
    await withTime(async pass => {
      const callers = new Callers(1, 10)
      const all = [callers.call('a'), callers.call('b', 100), callers.call('c'), callers.call('d', 200)]
      await pass(100)
      await callers.finish('a')
      assert.deepEqual(callers.running, ['c'])
      await pass(100)
      assert.deepEqual(callers.refused, ['b', 'd'])
      await callers.finish('c')
      all.push(callers.call('e'))
      await turn()
      assert.deepEqual(callers.running, ['e'])
      await callers.finish('e')
      await Promise.all(all)
    })
  })

  it('no longer counts as waiting', async () => {
    await withTime(async pass => {
      const callers = new Callers(1, 2)
      const all = [callers.call('a'), callers.call('b', 100), callers.call('c', 100)]
      await pass(100)
      all.push(callers.call('d'), callers.call('e'), callers.call('f'))
      await turn()
      assert.deepEqual(callers.refused, ['b', 'c', 'f'])
      for (const name of ['a', 'd', 'e']) await callers.finish(name)
      await Promise.all(all)
    })
  })

  it('is not rejected after it got its slot, however long its task takes', async () => {
    await withTime(async pass => {
      const callers = new Callers(1, 10)
      const all = [callers.call('a'), callers.call('b', 100), callers.call('c')]
      await pass(99)
      await callers.finish('a')
      await pass(1_000_000)
      assert.deepEqual([callers.running, callers.refused], [['b'], []])
      await callers.finish('b')
      assert.deepEqual(callers.running, ['c'])
      await callers.finish('c')
      await Promise.all(all)
    })
  })
})

/** Time passes only when the test moves it. */
async function withTime(work: (pass: (milliseconds: number) => Promise<void>) => Promise<void>): Promise<void> {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    await turn()
    await work(async milliseconds => {
      mock.timers.tick(milliseconds)
      await turn()
    })
  } finally {
    mock.timers.reset()
  }
}
