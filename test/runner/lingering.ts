import { after } from 'node:test'

/** How long a process of tests may take to end after its last test. */
const patienceMs = 5_000

// A process ends when nothing is left that it waits for. If a test left something behind, this names its kind.
after(() => {
  setTimeout(() => {
    const waiting = process.getActiveResourcesInfo().join(', ')
    console.error(`${patienceMs} ms after the last test of this process it still waits for: ${waiting}`)
  }, patienceMs).unref()
})
