/** Limits of what a database connection builds, keeps and lets wait. */
export const bounds = Object.freeze({
  /** Maximum size in bytes of one answer that the database builds. */
  answerBytes: 2 * 1024 * 1024,
  /**
   * Maximum number of prepared statements kept per connection, and of the characters of all of them together. A
   * prepared statement takes about 20 bytes of memory per character in SQLite and 160 in PostgreSQL.
   */
  statements: 400,
  statementText: { sqlite: 1024 * 1024, postgres: 256 * 1024 },
  /** Maximum number of operations that wait for the store. Further ones are rejected immediately. */
  waiting: 10_000,
})
