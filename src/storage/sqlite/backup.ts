import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, fsyncSync, linkSync, openSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { CopyData } from './copy-thread.ts'

/**
 * Copies a snapshot of a database, even while a server writes to it. The copy gets its name when it is complete, checked
 * and on the disk. A draft stays only if the process is killed. Stopping does not end the thread that copies: it takes
 * no messages, so the caller has to end the process.
 */
export async function backupSqlite(path: string, target: string, stop: AbortSignal): Promise<void> {
  const folder = dirname(resolve(target))
  const draft = join(folder, `duet-backup-${randomUUID()}.part`)
  closeSync(openSync(draft, 'wx', 0o600)) // SQLite fills an empty file, and keeps its mode
  try {
    const workerData: CopyData = { path, draft }
    await once(new Worker(new URL('copy-thread.ts', import.meta.url), { workerData }), 'exit', { signal: stop })
    syncToDisk(draft)
    linkSync(draft, target) // unlike rename, link does not replace an existing file
  } finally {
    rmSync(draft, { force: true })
  }
  syncToDisk(folder) // a new name is lost in a power cut until its folder is on the disk
}

function syncToDisk(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
