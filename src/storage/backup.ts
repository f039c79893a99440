import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, fsyncSync, linkSync, openSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Worker } from 'node:worker_threads'
import { draftEnding } from './backups.ts'
import type { DatabaseAddress } from './database.ts'
import type { CopyData } from './sqlite/copy-thread.ts'

export interface BackupOptions {
  /** Stopping does not end the thread that copies SQLite, which takes no messages: the caller has to end the process. */
  readonly stop: AbortSignal
  /** For the program of PostgreSQL. */
  readonly environment: Readonly<Record<string, string | undefined>>
}

/**
 * Copies a snapshot of a database to a file that only its owner may read, even while servers write to it. The copy gets
 * its name when it is complete and on the disk. A draft stays only if the process is killed.
 */
export async function backUpDatabase(
  address: DatabaseAddress,
  target: string,
  { stop, environment }: BackupOptions,
): Promise<void> {
  const folder = dirname(resolve(target))
  const draft = join(folder, `duet-backup-${randomUUID()}${draftEnding}`)
  closeSync(openSync(draft, 'wx', 0o600)) // both engines fill an empty file, and keep its mode
  try {
    if (address.kind === 'sqlite') await copySqlite({ path: address.path, draft }, stop)
    else await (await import('./postgres/dump.ts')).dumpPostgres(address.url, draft, stop, environment)
    syncToDisk(draft)
    linkSync(draft, target) // unlike rename, link does not replace an existing file
  } finally {
    rmSync(draft, { force: true })
  }
  syncToDisk(folder) // a new name is lost in a power cut until its folder is on the disk
}

async function copySqlite(workerData: CopyData, signal: AbortSignal): Promise<void> {
  await once(new Worker(new URL('sqlite/copy-thread.ts', import.meta.url), { workerData }), 'exit', { signal })
}

function syncToDisk(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
