import { signal } from '@preact/signals'

/** The current time, once a second, for countdowns and ages. Components that read it are rendered again. */
export const now = signal(Date.now())

setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, 1000)
