import { PostgresServer, postgresMissing } from './postgres.ts'

let shared: PostgresServer | undefined

/** One PostgreSQL server for the whole run; each test that wants one makes a database of its own on it. */
export async function globalSetup(): Promise<void> {
  const missing = postgresMissing()
  if (missing !== undefined) {
    console.log(`# Tests on PostgreSQL are skipped: ${missing}`)
    return
  }
  shared = await PostgresServer.start()
  process.env.DUET_TEST_POSTGRES = shared.url
}

export async function globalTeardown(): Promise<void> {
  await shared?.[Symbol.asyncDispose]()
}
