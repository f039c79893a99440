import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MetricsOfThread } from '../../src/server/metrics.ts'
import { ThreadMetrics } from '../../src/threads/thread-metrics.ts'

/** A thread that tells its number of requests when the test lets it. */
class FakeThread {
  readonly index: number
  requests = 0
  isLate = false

  constructor(index: number) {
    this.index = index
  }

  call<Result>(): Promise<Result> {
    if (this.isLate) return new Promise(() => {})
    return Promise.resolve([{ name: 'requests', values: [{ value: this.requests }] }] as Result)
  }
}

function sumOf(all: readonly MetricsOfThread[]): number {
  return all.flat().reduce((sum, { values }) => sum + Number(values[0]?.value), 0)
}

test('a thread that is late is counted with what it told last, and one that has ended is not', async () => {
  const [first, second] = [new FakeThread(0), new FakeThread(1)]
  const threads = new Map([first, second].map(thread => [thread.index, thread]))
  const metrics = new ThreadMetrics(threads, 1)
  first.requests = 10
  second.requests = 7
  assert.equal(sumOf(await metrics.collect()), 17)

  second.isLate = true
  second.requests = 8
  first.requests = 11
  assert.equal(sumOf(await metrics.collect()), 18)
  second.isLate = false
  assert.equal(sumOf(await metrics.collect()), 19)

  threads.delete(1)
  metrics.forget(1)
  assert.equal(sumOf(await metrics.collect()), 11)
})

test('what a thread tells after another one has replaced it is not counted', async () => {
  const old = new FakeThread(0)
  old.requests = 5
  const threads = new Map([[0, old]])
  const metrics = new ThreadMetrics(threads)
  const collected = metrics.collect()
  assert.equal(metrics.collect(), collected, 'all that ask at the same time get the same')
  threads.set(0, new FakeThread(0))
  assert.equal(sumOf(await collected), 0)
  assert.equal(sumOf(await metrics.collect()), 0)
})
