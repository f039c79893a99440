import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, loadavg, release, totalmem } from 'node:os'

/** What the figures were measured on, in lines. */
export function machine(): readonly string[] {
  const model = spawnSync('lscpu', { encoding: 'utf8' }).stdout?.match(/^Model name:\s+(.+)$/m)?.[1]
  const [{ model: named = '' } = {}] = cpus()
  const system = read('/etc/os-release').match(/^PRETTY_NAME="(.+)"$/m)?.[1]
  const { node, v8, sqlite } = process.versions
  return [
    `${cpus().length} cores of ${model ?? (named || 'an unnamed processor')} (${process.arch}), ${Math.round(totalmem() / 2 ** 30)} GiB of memory`,
    `${system ?? 'Linux'}, kernel ${release()}`,
    `Node ${node} (V8 ${v8}, SQLite ${sqlite})${versionOf('postgres')}${versionOf('go')}`,
    `load average at the start: ${loadavg()[0]?.toFixed(1)}`,
  ]
}

function versionOf(program: 'postgres' | 'go'): string {
  const [command = '', ...args] = program === 'go' ? ['go', 'version'] : ['psql', '--version']
  const { stdout, error } = spawnSync(command, args, { encoding: 'utf8' })
  if (error !== undefined) return ''
  const version = /(\d+\.\d+(\.\d+)?)/.exec(stdout)?.[1]
  return `, ${program === 'go' ? 'Go' : 'PostgreSQL'} ${version}`
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
