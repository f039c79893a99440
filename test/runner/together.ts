import { before, it } from 'node:test'

/**
 * Replaces `it` in a suite whose tests mostly wait: so many of them run at the same time. The option `concurrency` does
 * not help in a random order: there Node begins one test, and two when it has ended.
 */
export function together(atOnce = 10): (name: string, test: () => Promise<unknown>) => void {
  const waiting: (() => Promise<void>)[] = []
  before(() => {
    const work = async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await next()
    }
    for (let worker = 0; worker < atOnce; worker++) work()
  })
  return (name, test) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    promise.catch(() => {}) // a failure is reported below
    waiting.push(() => test().then(() => resolve(), reject))
    it(name, () => promise)
  }
}
