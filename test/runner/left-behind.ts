import { readdirSync, readFileSync } from 'node:fs'
import { postgresData } from '../support/postgres.ts'
import { sqliteTemplate } from '../support/templates.ts'

/** The folder of generated modules, each of which runs some test files. */
export const groupsFolder = 'groups'

/** Files that belong to the run, not to a test. */
const kept: readonly string[] = [groupsFolder, sqliteTemplate, postgresData]

/** Chromium creates files and removes their names at once. If it ends between the two, such a name stays. */
function isKept(name: string): boolean {
  return kept.includes(name) || name.startsWith('.org.chromium.')
}

/** Processes that still run with this folder as their temporary one (they are killed), and files in the folders. */
export function leftBehind(folder: string, more: readonly string[] = []): readonly string[] {
  const processes = processesOf(folder).map(({ pid, command }) => {
    process.kill(pid, 'SIGKILL')
    return `process ${pid}: ${command}`
  })
  const files = [folder, ...more].flatMap(each => readdirSync(each)).filter(name => !isKept(name))
  return [...processes, ...files.map(name => `file ${name}`)]
}

/** Linux shows the environment of a process. On other systems no process is found. */
function processesOf(folder: string): readonly { readonly pid: number; readonly command: string }[] {
  const read = (pid: number, file: string): string => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, 'utf8')
    } catch {
      return '' // it has ended, or belongs to another user
    }
  }
  let pids: readonly number[] = []
  try {
    pids = readdirSync('/proc').map(Number).filter(Number.isInteger)
  } catch {}
  return pids
    .filter(pid => pid !== process.pid && read(pid, 'environ').includes(`\0TMPDIR=${folder}`))
    .map(pid => ({ pid, command: read(pid, 'cmdline').replaceAll('\0', ' ').trim() }))
}
