import { setTimeout as pause } from 'node:timers/promises'

/** Waits until a condition holds, looking every few milliseconds; fails when it never does. */
export async function waitUntil(condition: () => boolean | Promise<boolean>, patienceMs = 10_000): Promise<void> {
  const deadline = Date.now() + patienceMs
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`Waited in vain until ${condition}`)
    await pause(5)
  }
}
