import { closeSync, openSync, readSync, type Stats, statSync } from 'node:fs'

/**
 * Notices that the open file is no longer the one at its path. SQLite keeps working on a file that was deleted or
 * replaced, and everything it writes is lost when the process ends. `userVersion` is the database's as SQLite reads it. It
 * gets a new value whenever a server claims the file.
 */
export function watchFile(path: string, userVersion: number) {
  /** Closing any descriptor of the file releases the locks that SQLite has on it. So it stays open until the end. */
  const descriptor = openSync(path, 'r')
  /** Valid values of `user_version` in the file: the current one, and the one before it, until the WAL is written back. */
  const userVersions = new Set([userVersion, headerOf(descriptor)?.userVersion ?? userVersion])
  const seen = new Map<string, Stats>()
  let largest = 0

  /** Tells how something other than SQLite changed the file in place, or undefined if nothing did. */
  const changeOf = (size: number): string | undefined => {
    const header = headerOf(descriptor)
    if (header === undefined) return 'is not a database any more'
    if (!userVersions.has(header.userVersion)) return 'was overwritten'
    // If SQLite is about to extend the file, its header already contains the new size.
    if (size < largest && size < header.bytes) return 'was cut off'
    largest = size
    return undefined
  }

  return {
    /** How the file was lost, or undefined if it was not. */
    loss(): string | undefined {
      for (const suffix of ['', '-wal', '-shm']) {
        const known = seen.get(suffix)
        const found = statSync(path + suffix, { throwIfNoEntry: false })
        if (found === undefined && known !== undefined) return `was removed (${suffix || 'the file itself'})`
        if (found === undefined) continue // SQLite creates the WAL file when it needs it
        if (known !== undefined && (known.ino !== found.ino || known.dev !== found.dev)) return 'was replaced'
        seen.set(suffix, found)
        const isTouched = known?.mtimeMs !== found.mtimeMs || known.size !== found.size
        const change = suffix === '' && isTouched ? changeOf(found.size) : undefined
        if (change !== undefined) return change
      }
      return undefined
    },
    close: () => closeSync(descriptor),
  }
}

/** See https://www.sqlite.org/fileformat.html, "The Database Header". */
function headerOf(descriptor: number): { readonly userVersion: number; readonly bytes: number } | undefined {
  const header = Buffer.alloc(100)
  const read = readSync(descriptor, header, 0, header.length, 0)
  if (read < header.length || header.toString('latin1', 0, 16) !== 'SQLite format 3\0') return undefined
  const pageSize = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16)
  return { userVersion: header.readInt32BE(60), bytes: header.readUInt32BE(28) * pageSize }
}
