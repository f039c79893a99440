/** Waits for the result until the signal ends the wait. The work goes on, because others may wait for its result. */
export function unlessAborted<Value>(result: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  let stop = () => {}
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal?.reason)
    if (signal?.aborted) stop()
    signal?.addEventListener('abort', stop)
  })
  return Promise.race([result, aborted]).finally(() => signal?.removeEventListener('abort', stop))
}
