import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { AppError } from '../../core/errors.ts'

/** Dumps a database with `pg_dump`. The events of the last hour are left out: nobody can resume at them elsewhere. */
export async function dumpPostgres(
  url: string,
  file: string,
  signal: AbortSignal,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const { address, password } = forLibpq(url)
  const args = ['--format=custom', '--no-owner', '--no-password', '--exclude-table-data=outbox', `--file=${file}`]
  const env = { ...environment, ...(password !== '' && { PGPASSWORD: password }) }
  try {
    await promisify(execFile)('pg_dump', [...args, `--dbname=${address}`], { env, signal })
  } catch (error) {
    const { code, stderr } = error as { code: string | number; stderr: string }
    if (code === 'ENOENT') throw new AppError('unavailable', 'pg_dump is not installed, or not in PATH')
    throw new Error(stderr || `pg_dump ended with ${code}`)
  }
}

/**
 * An address as PostgreSQL's own programs read it, and the password apart: everybody on a machine can read arguments.
 * `pg` verifies certificates in modes in which those programs would not, and has two parameters that they refuse.
 */
export function forLibpq(url: string): { readonly address: string; readonly password: string } {
  const address = new URL(url)
  const { searchParams } = address
  const password = searchParams.get('password') ?? decodeURIComponent(address.password)
  const isVerified = /^(?:true|1)$/.test(searchParams.get('ssl') ?? '')
  const mode = searchParams.get('sslmode') ?? (isVerified ? 'verify-full' : undefined)
  const isSame = searchParams.get('uselibpqcompat') === 'true' || !/^(?:prefer|require|verify-ca)$/.test(mode ?? '')
  if (mode !== undefined) searchParams.set('sslmode', mode === 'no-verify' ? 'require' : isSame ? mode : 'verify-full')
  for (const name of ['password', 'ssl', 'uselibpqcompat']) searchParams.delete(name)
  address.password = ''
  address.search = address.search.replaceAll('+', '%20') // a plus sign is a blank only on the web
  return { address: address.href, password }
}
