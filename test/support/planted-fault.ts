import { isMainThread } from 'node:worker_threads'

/** Loaded before the program by tests of what it does about errors that nobody handles. Signals make them. */
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
