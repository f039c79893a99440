import { after, before } from 'node:test'

/** How long a process of tests may take to end after its last test. */
const patienceMs = 5_000

// A process ends when nothing is left that it waits for. If a test left something behind, this names its kind.
after(() => {
  setTimeout(() => {
    const waiting = process.getActiveResourcesInfo().join(', ')
    console.error(`${patienceMs} ms after the last test of this process it still waits for: ${waiting}`)
  }, patienceMs).unref()
})

const { promise: allLoaded, resolve: loaded } = Promise.withResolvers<void>()

// A file that awaits something while it loads would load beside the first tests, and see what they make of globals.
before(() => allLoaded)

/** Called when all test files of this process are loaded. Its tests begin then. */
export { loaded }
