/** What a promise becomes, or an error with this message if it takes longer than that. */
export async function within<Result>(promise: Promise<Result>, timeoutMs: number, message: string): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = whenLate(timeoutMs, () => reject(new Error(message)))
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Calls a function after this time, when all that has arrived meanwhile was read, and handled in the turn after that. If
 * this thread was too busy to read it, that is no reason to give up. The function may be called once even after
 * `clearTimeout`.
 */
export function whenLate(ms: number, late: () => void): NodeJS.Timeout {
  return setTimeout(() => setImmediate(setImmediate, late), ms)
}
