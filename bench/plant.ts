import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { loadMigrations } from '../src/storage/migrate.ts'
import { migrateSqlite } from '../src/storage/sqlite/file.ts'

/**
 * A database with so many posts, of a hundredth as many users if not told otherwise, with a few comments each. Nothing is
 * lost if the machine fails meanwhile, so nothing waits for the disk; the indexes are made when the rows are there.
 */
export function fillSqlite(path: string, posts: number, comments?: number, users?: number): void {
  migrateSqlite(path, loadMigrations(join(import.meta.dirname, '..', 'migrations', 'sqlite')))
  using database = new DatabaseSync(path)
  database.exec('pragma synchronous = off; pragma foreign_keys = off; pragma cache_size = -262144')
  database.exec('begin')
  const indexes = database
    .prepare(
      "select name, sql from sqlite_schema where type = 'index' and sql is not null and tbl_name in ('users', 'posts', 'comments')",
    )
    .all()
  for (const { name } of indexes) database.exec(`drop index ${name}`)
  const [analyze, ...inserts] = fillStatements('sqlite', posts, comments, users).toReversed()
  for (const statement of inserts.toReversed()) database.exec(statement)
  for (const { sql } of indexes) database.exec(String(sql))
  database.exec('commit')
  database.exec(`${analyze}; pragma wal_checkpoint(truncate)`)
}

/** The statements that fill the database, in the dialect of its engine. */
export function fillStatements(
  kind: 'sqlite' | 'postgres',
  posts: number,
  comments = 4,
  users = Math.max(10, Math.floor(posts / 100)),
): readonly string[] {
  const numbers = (most: number) =>
    kind === 'sqlite'
      ? `(with recursive n(i) as (select 1 union all select i + 1 from n where i < ${most}) select i from n) as n`
      : `generate_series(1, ${most}) as n(i)`
  const at = "'2026-01-31T12:00:00.000Z'"
  return [
    `insert into users (id, name, email, avatar, token_mark, created_at)
     select i, 'User ' || i, 'user' || i || '@example.com', 'https://example.com/' || i || '.png', 'mark', ${at}
     from ${numbers(users)}`,
    `update counters set next = ${users + 1}`,
    `insert into posts (author_id, title, content, likes, published_at)
     select i % ${users} + 1, 'Title of post ' || i, 'Some content of a post, long enough to be read. ' || i, i % 100, ${at}
     from ${numbers(posts)}`,
    `insert into comments (post_id, author_id, text, created_at)
     select i % ${posts} + 1, i % ${users} + 1, 'A remark on this, number ' || i, ${at} from ${numbers(posts * comments)}`,
    'analyze',
  ]
}
