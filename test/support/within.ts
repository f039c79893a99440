import assert from 'node:assert/strict'

/** How long a test waits for what must happen: long enough for a busy machine, shorter than the runner's own time-out. */
export const patienceMs = 60_000

// As they are before any test replaces them: this clock goes on while others are held.
const { setTimeout, clearTimeout } = globalThis

/** Waits for what must happen, and fails with its name where it does not, before the runner gives up on the test. */
export async function within<Value>(
  promise: Promise<Value>,
  what: string | (() => string),
  milliseconds = patienceMs,
): Promise<Value> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    const message = typeof what === 'string' ? what : what()
    reject(new assert.AssertionError({ message: `waited ${milliseconds / 1000} s in vain for ${message}` }))
  }, milliseconds)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
