import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { CopyData } from './copy-thread.ts'

/** Copies a snapshot of a database to an empty file, and checks the copy. The thread that copies takes no messages. */
export async function copySqlite(path: string, draft: string, stop: AbortSignal): Promise<void> {
  const workerData: CopyData = { path, draft }
  await once(new Worker(new URL('copy-thread.ts', import.meta.url), { workerData }), 'exit', { signal: stop })
}
