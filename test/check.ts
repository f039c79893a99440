import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** Checks types, lint and format, all at the same time. */
const root = join(import.meta.dirname, '..')
const caches = join(root, 'node_modules', '.cache', 'tsc')

const results = await Promise.all([
  types('.', 'service'),
  types('client', 'client'),
  types('console', 'console'),
  run('biome', ['check', '--error-on-warnings', '.']),
])
process.exitCode = results.every(passed => passed) ? 0 : 1

/** What has not changed since the last time is not checked again. */
function types(folder: string, name: string): Promise<boolean> {
  return run('tsc', ['--noEmit', '-p', folder, '--incremental', '--tsBuildInfoFile', join(caches, `${name}.json`)])
}

async function run(program: string, args: readonly string[]): Promise<boolean> {
  const child = spawn(join(root, 'node_modules', '.bin', program), args, { cwd: root, stdio: 'inherit' })
  const [code] = await once(child, 'close')
  return code === 0
}
