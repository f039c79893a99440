import { isMainThread } from 'node:worker_threads'

// Loaded into the server under test, with `--expose-gc`. The service itself does not use this signal.
if (isMainThread) {
  process.on('SIGWINCH', () => {
    globalThis.gc?.()
    globalThis.gc?.()
    const { heapUsed, external } = process.memoryUsage()
    process.stdout.write(`${JSON.stringify({ heapProbe: heapUsed + external })}\n`)
  })
}
