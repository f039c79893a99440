import { isMainThread } from 'node:worker_threads'

/** Loaded before the program by tests of unhandled errors. Signals cause the errors. */
if (isMainThread) {
  process.on('SIGWINCH', () => {
    setTimeout(() => {
      throw new Error('a planted fault')
    })
  })
  process.on('SIGCONT', () => {
    Promise.reject(new Error('a planted fault'))
  })
}
