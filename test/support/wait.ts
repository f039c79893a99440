import { AssertionError } from 'node:assert'
import { setTimeout as pause } from 'node:timers/promises'
import { inForm } from './form.ts'

// As they are before any test replaces them: this clock goes on while others are held.
const { setTimeout, clearTimeout } = globalThis

/**
 * How long a test waits for anything that will happen on a working service. It is long, because a busy machine is no
 * defect, and it ends, so that a defect is told by an assertion.
 */
export const testTimeoutMs = inForm(120_000, 300_000)

/** The timeouts of the service for tests that are not about them: as long as those of the tests. */
export const generous = {
  DATABASE_TIMEOUT_MS: String(testTimeoutMs),
  REDIS_TIMEOUT_MS: String(testTimeoutMs),
  SOCKET_INIT_TIMEOUT_MS: String(testTimeoutMs),
  SOCKETS_PER_CLIENT: '100000',
  SOCKET_MESSAGES_PER_SECOND: '0',
} as const

/** For tests in which the database does not respond: a short timeout. */
export const impatient = { DATABASE_TIMEOUT_MS: '1000' } as const

/** Waits until a condition holds, looking every few milliseconds; fails when it never does. */
export async function waitUntil(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + testTimeoutMs
  while (!(await condition())) {
    if (Date.now() > deadline) throw new AssertionError({ message: `Waited in vain until ${condition}` })
    await pause(5)
  }
}

/** The result of a promise. Fails with a message if the promise does not settle in time. */
export async function within<Value>(promise: Promise<Value>, what: string | (() => string)): Promise<Value> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    const message = `Waited in vain for ${typeof what === 'string' ? what : what()}`
    reject(new AssertionError({ message }))
  }, testTimeoutMs)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
