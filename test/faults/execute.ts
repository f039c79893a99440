import { DatabaseSync } from 'node:sqlite'
import type { TestDatabase } from '../support/engines.ts'
import { executeOn } from '../support/templates.ts'

/** Runs statements on a database directly, not through its server. */
export async function execute({ kind, location }: TestDatabase, script: string): Promise<void> {
  if (kind === 'sqlite') {
    const connection = new DatabaseSync(location)
    try {
      connection.exec(script)
    } finally {
      connection.close()
    }
    return
  }
  await executeOn(location, script)
}
