import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdirSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Checks types, lint and format, all at the same time. What has not changed since it passed is not checked again. */
const root = join(import.meta.dirname, '..')
const caches = join(root, 'node_modules', '.cache')

const results = await Promise.all([...['.', 'client', 'console'].map(types), lintAndFormat()])
process.exitCode = results.every(passed => passed) ? 0 : 1

function types(folder: string): Promise<boolean> {
  const cache = join(caches, 'tsc', `${folder === '.' ? 'service' : folder}.json`)
  return run('tsc', ['--noEmit', '-p', folder, '--incremental', '--tsBuildInfoFile', cache])
}

/** None of our rules compares files, so a file that has not changed still passes. */
async function lintAndFormat(): Promise<boolean> {
  const begun = new Date()
  const mark = join(caches, 'biome-passed')
  const last = statSync(mark, { throwIfNoEntry: false })?.mtimeMs ?? 0
  // The time of this kind also changes when a file is moved here.
  const hasChanged = (path: string) => statSync(join(root, path)).ctimeMs > last
  const rules = ['biome.json', '.gitignore', 'node_modules/@biomejs/biome/package.json']
  const files = rules.some(hasChanged)
    ? ['.']
    : globSync('**/*.*', { cwd: root, exclude: ['**/node_modules', '**/dist'] }).filter(hasChanged)
  if (files.length === 0) return true
  const passed = await run('biome', ['check', '--error-on-warnings', '--no-errors-on-unmatched', ...files])
  if (passed) {
    mkdirSync(caches, { recursive: true })
    writeFileSync(mark, '')
    utimesSync(mark, begun, begun)
  }
  return passed
}

async function run(program: string, args: readonly string[]): Promise<boolean> {
  const child = spawn(join(root, 'node_modules', '.bin', program), args, { cwd: root, stdio: 'inherit' })
  const [code] = await once(child, 'close')
  return code === 0
}
