/** Calls functions of the application. If one throws, the error is reported as uncaught, and the client continues. */
export function notify<Values extends readonly unknown[]>(
  listeners: Iterable<((...values: Values) => void) | undefined>,
  ...values: Values
): void {
  for (const listener of [...listeners]) {
    try {
      listener?.(...values)
    } catch (error) {
      queueMicrotask(() => {
        throw error
      })
    }
  }
}

/** Adds a listener. Returns a function that removes it. */
export function listen<Listener>(listeners: Set<Listener>, listener: Listener): () => void {
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
  }
}
