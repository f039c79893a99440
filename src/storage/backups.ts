import { readdirSync, rmSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { DatabaseAddress } from './database.ts'

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

/** A backup that is not complete. */
export const draftEnding = '.part'

/** Oldest first. */
function backupsOf(names: readonly string[]): readonly string[] {
  return names.filter(name => /^duet-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.(?:db|dump)$/.test(name)).toSorted()
}
