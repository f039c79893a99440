import { getPriority, setPriority } from 'node:os'

/**
 * Lets other threads run before the one that calls, if there are too few cores. On Linux each thread has a priority, and
 * process 0 means the thread that calls. On other systems it means the whole process, so nothing is changed there.
 */
export function lowerPriority(platform: string = process.platform, set = setPriority): void {
  if (platform !== 'linux') return
  try {
    set(0, Math.min(leastPriority, getPriority() + steps))
  } catch {} // forbidden, for example by a container; the thread works all the same
}

/** Each step is about a fifth less of a core that others want too. Five of them leave a quarter. */
const steps = 5
const leastPriority = 19
