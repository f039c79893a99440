/** What a promise becomes, or an error with this message if it takes longer than that. */
export async function within<Result>(promise: Promise<Result>, timeoutMs: number, message: string): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(message)), timeoutMs)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
