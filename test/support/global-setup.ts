import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { leftBehind } from './left-behind.ts'
import { PostgresServer, postgresMissing } from './postgres.ts'
import { createTemplates } from './templates.ts'

let folder: string | undefined
let shared: PostgresServer | undefined

/** One folder for all temporary files of the run, and one PostgreSQL server, on which each test has its own database. */
export async function globalSetup(): Promise<void> {
  folder = mkdtempSync(join(tmpdir(), 'duet-run-'))
  chmodSync(folder, 0o711) // PostgreSQL runs as another user
  process.env.TMPDIR = folder
  const missing = postgresMissing()
  if (missing === undefined) shared = await PostgresServer.start()
  else console.log(`# Tests on PostgreSQL are skipped: ${missing}`)
  await createTemplates(folder, shared)
}

/** Fails the run where a test left a process or a file behind. */
export async function globalTeardown(): Promise<void> {
  if (folder === undefined) return
  await shared?.[Symbol.asyncDispose]()
  const left = leftBehind(folder)
  rmSync(folder, { recursive: true, force: true })
  if (left.length === 0) return
  console.error(`Tests left behind:\n${left.join('\n')}`) // the runner fails, but does not tell why
  throw new Error('Tests left something behind')
}
