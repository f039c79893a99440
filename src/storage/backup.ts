import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { linkSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { DatabaseAddress } from './database.ts'

/**
 * Copies a snapshot of a database to a file that only its owner may read, even while servers write to it. The copy gets
 * its name when it is complete and on the disk. A draft stays only if the process is killed. `stop` does not end the thread
 * that copies SQLite, which takes no messages: the caller has to end the process. `environment` is for `pg_dump`.
 */
export async function backUpDatabase(
  address: DatabaseAddress,
  target: string,
  stop: AbortSignal,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const folder = dirname(resolve(target))
  const draft = join(folder, `duet-backup-${randomUUID()}${draftEnding}`)
  writeFileSync(draft, '', { flag: 'wx', mode: 0o600 }) // both engines fill an empty file, and keep its mode
  try {
    if (address.kind === 'sqlite') {
      const workerData = { path: address.path, draft }
      const thread = new Worker(new URL('sqlite/copy-thread.ts', import.meta.url), { workerData })
      await once(thread, 'exit', { signal: stop })
    } else await (await import('./postgres/dump.ts')).dumpPostgres(address.url, draft, stop, environment)
    await syncToDisk(draft)
    linkSync(draft, target) // unlike rename, link does not replace an existing file
  } finally {
    rmSync(draft, { force: true })
  }
  await syncToDisk(folder) // a new name is lost in a power cut until its folder is on the disk
}

async function syncToDisk(path: string): Promise<void> {
  await using file = await open(path)
  await file.sync()
}

// The backups in one folder. The name of each has the instant at which it began, so it stays true for copies of the file.

export function backupName(kind: DatabaseAddress['kind'], now: number): string {
  const instant = new Date(now).toISOString().replaceAll(':', '-').slice(0, 19)
  return `duet-${instant}Z.${kind === 'sqlite' ? 'db' : 'dump'}`
}

/** Seconds since the newest backup began. Infinite if there is none, or if the folder cannot be read. */
export async function backupAge(folder: string, now: number): Promise<number> {
  const newest = backupsOf(await readdir(folder).catch(() => [])).at(-1) ?? ''
  const [date, time = ''] = newest.slice('duet-'.length).split(/[TZ]/)
  return newest === '' ? Number.POSITIVE_INFINITY : (now - Date.parse(`${date}T${time.replaceAll('-', ':')}Z`)) / 1000
}

/** Removes all but the newest backups, and drafts of backups that were killed long ago. */
export function removeOldBackups(folder: string, keep: number, now: number): void {
  const names = readdirSync(folder)
  const drafts = names.filter(name => name.startsWith('duet-backup-') && name.endsWith(draftEnding))
  const left = drafts.filter(name => statSync(join(folder, name)).mtimeMs < now - 86_400_000)
  for (const name of [...backupsOf(names).slice(0, -keep), ...left]) rmSync(join(folder, name), { force: true })
}

const draftEnding = '.part'

/** Oldest first. */
function backupsOf(names: readonly string[]): readonly string[] {
  return names.filter(name => /^duet-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.(?:db|dump)$/.test(name)).toSorted()
}
