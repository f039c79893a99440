import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError, fault, unavailable } from '../../src/core/errors.ts'
import { SingleFlight } from '../../src/core/single-flight.ts'

/** Work that ends when the test ends it, with a count of its starts. */
class Work {
  begun = 0
  readonly #ends: PromiseWithResolvers<string>[] = []

  readonly run = (): Promise<string> => {
    const end = Promise.withResolvers<string>()
    this.#ends.push(end)
    this.begun++
    return end.promise
  }

  succeed(outcome: string): void {
    this.#ends.shift()?.resolve(outcome)
  }

  fail(error: unknown): void {
    this.#ends.shift()?.reject(error)
  }
}

/** Waits until all work that does not depend on the test is done. */
function settle(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

const lyingWithWhoAsked = [
  new AppError('bad-input', 'amount must be a number'),
  new AppError('unauthenticated', 'Invalid or expired token'),
  new AppError('forbidden', 'Not permitted'),
  new AppError('not-found', 'Order not found'),
  new AppError('conflict', 'Order is already paid'),
]
const outages = [unavailable(new Error('no database')), fault(new Error('a defect')), new Error('anything else')]

test('concurrent calls with the same key share one task, and exactly one of them is the leader', async () => {
  const [flights, work] = [new SingleFlight<string>(), new Work()]
  const joined = Array.from({ length: 50 }, () => flights.run('k', work.run))
  await settle()
  assert.equal(work.begun, 1)
  work.succeed('done')
  const answers = await Promise.all(joined)
  assert.deepEqual(new Set(answers.map(({ outcome }) => outcome)), new Set(['done']))
  assert.deepEqual(
    answers.map(({ isLeader }) => isLeader),
    [true, ...Array(49).fill(false)],
  )
  assert.equal(work.begun, 1)
})

test('different keys do not wait for each other', async () => {
  const [flights, slow, quick] = [new SingleFlight<string>(), new Work(), new Work()]
  const first = flights.run('slow', slow.run)
  const second = flights.run('quick', quick.run)
  quick.succeed('second')
  assert.deepEqual(await second, { outcome: 'second', isLeader: true })
  slow.succeed('first')
  assert.deepEqual(await first, { outcome: 'first', isLeader: true })
})

test('after a success and after any failure the next call runs its own task', async () => {
  const [flights, work] = [new SingleFlight<string>(), new Work()]
  for (const error of [undefined, ...lyingWithWhoAsked, ...outages]) {
    const call = flights.run('k', work.run)
    if (error === undefined) work.succeed('first')
    else work.fail(error)
    if (error === undefined) assert.deepEqual(await call, { outcome: 'first', isLeader: true })
    else await assert.rejects(call, error)
    const next = flights.run('k', work.run)
    work.succeed('next')
    assert.deepEqual(await next, { outcome: 'next', isLeader: true })
  }
})

for (const error of lyingWithWhoAsked) {
  test(`an error of one caller (${error.code}) is not shared: the next caller runs its own task, one at a time`, async () => {
    const [flights, work] = [new SingleFlight<string>(), new Work()]
    const joined = Array.from({ length: 4 }, () => flights.run('k', work.run))
    const outcomes = Promise.allSettled(joined)
    for (const begun of [2, 3]) {
      work.fail(error)
      await settle()
      assert.equal(work.begun, begun)
    }
    work.succeed('third time lucky')
    const answers = await outcomes
    const outcome = 'third time lucky'
    assert.deepEqual(answers, [
      { status: 'rejected', reason: error },
      { status: 'rejected', reason: error },
      { status: 'fulfilled', value: { outcome, isLeader: true } },
      { status: 'fulfilled', value: { outcome, isLeader: false } },
    ])
    assert.equal(work.begun, 3)
  })
}

for (const error of outages) {
  test(`an outage (${'code' in error ? error.code : error.message}) is shared: all callers get the error`, async () => {
    const [flights, work] = [new SingleFlight<string>(), new Work()]
    const outcomes = Promise.allSettled(Array.from({ length: 20 }, () => flights.run('k', work.run)))
    work.fail(error)
    await settle()
    assert.equal(work.begun, 1)
    assert.deepEqual(await outcomes, Array(20).fill({ status: 'rejected', reason: error }))
  })
}
