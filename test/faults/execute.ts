import { DatabaseSync } from 'node:sqlite'
import type { TestDatabase } from '../support/engines.ts'
import { executeOn } from '../support/templates.ts'

/** Runs statements on a database directly, not through its server. */
export async function execute({ kind, location }: TestDatabase, script: string): Promise<void> {
  if (kind === 'postgres') return executeOn(location, script)
  using connection = new DatabaseSync(location)
  connection.exec(script)
}
