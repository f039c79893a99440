import { isMainThread } from 'node:worker_threads'
import type { Question } from '../probe.ts'

// Loaded into a server (`node --expose-gc --import`) whose memory is read: it collects garbage when it is asked to, and
// does nothing else, so that what the server costs is its own.
if (isMainThread) {
  process.on('message', ({ id }: Question) => {
    globalThis.gc?.()
    globalThis.gc?.()
    process.send?.({ id })
  })
  process.channel?.unref()
}
