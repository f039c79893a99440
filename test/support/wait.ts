import { AssertionError } from 'node:assert'
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import { inForm } from './form.ts'

// The real timers, before a test replaces them with mocked ones.
const { setTimeout, clearTimeout } = globalThis

/**
 * How long a test waits for an event of a working service. It is long, because a slow machine is not a defect. It is
 * limited, so that a defect is reported by an assertion.
 */
export const testTimeoutMs = inForm(120_000, 300_000)

/** Timeouts of the service as long as those of the tests, for tests that are not about timeouts. */
export const generous = {
  DATABASE_TIMEOUT_MS: String(testTimeoutMs),
  REDIS_TIMEOUT_MS: String(testTimeoutMs),
  SOCKET_INIT_TIMEOUT_MS: String(testTimeoutMs),
  SOCKETS_PER_CLIENT: '100000',
  SOCKET_MESSAGES_PER_SECOND: '0',
  SLOW_OPERATION_MS: String(testTimeoutMs),
} as const

/** A short timeout, for tests in which the database does not respond. */
export const impatient = { DATABASE_TIMEOUT_MS: '1000' } as const

/** Waits until a condition holds, and checks it every few milliseconds. Fails after the timeout. */
export async function waitUntil(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + testTimeoutMs
  for (let tries = 1; !(await condition()); tries++) {
    if (Date.now() > deadline) throw new AssertionError({ message: `Timed out waiting until ${condition}` })
    await pause(Math.min(100, 4 + tries)) // a condition may ask the service, which answers 1,000 times a minute at most
  }
}

/**
 * Fails unless a condition holds within some ten seconds of a machine without other work. It counts how often it asks,
 * not time, because on a busy machine the service is slower, too.
 */
export async function assertSoon(condition: () => boolean): Promise<void> {
  for (let tries = 0; !condition(); tries++) {
    if (tries === 1_000) throw new AssertionError({ message: `It never happened that ${condition}` })
    await pause(10)
  }
}

/** The result of a promise. Fails with a message if the promise does not settle in time. */
export async function within<Value>(promise: Promise<Value>, what: string | (() => string)): Promise<Value> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    const message = `Timed out waiting for ${typeof what === 'string' ? what : what()}`
    reject(new AssertionError({ message }))
  }, testTimeoutMs)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** The different values above 0 of a count at the turns of the event loop, until the work is done. */
export async function atEachTurn(count: () => number, work: () => Promise<unknown>): Promise<readonly number[]> {
  const counts = new Set<number>()
  let isOver = false
  const watching = (async () => {
    for (; !isOver; counts.add(count())) await turn()
  })()
  await work().finally(() => (isOver = true))
  await watching
  return [...counts].filter(count => count > 0)
}
