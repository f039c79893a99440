import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import type { TestDatabase } from '../support/engines.ts'

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
  const client = new pg.Client({ connectionString: location })
  await client.connect()
  try {
    await client.query(script)
  } finally {
    await client.end()
  }
}
