/** Waits for the result until the signal ends the wait. Others may wait for the same result: it is still made. */
export function unlessAborted<Value>(result: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  let stop = () => {}
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal?.reason)
    if (signal?.aborted) stop()
    signal?.addEventListener('abort', stop)
  })
  return Promise.race([result, aborted]).finally(() => signal?.removeEventListener('abort', stop))
}
