import { join } from 'node:path'
import { loadMigrations } from '../src/storage/migrate.ts'
import { SqliteConnection } from '../src/storage/sqlite/connection.ts'
import { migrateSqlite } from '../src/storage/sqlite/file.ts'

/** A database with so many posts, of a hundredth as many users if not told otherwise, with a few comments each. */
export function fillSqlite(path: string, posts: number, comments?: number, users?: number): void {
  migrateSqlite(path, loadMigrations(join(import.meta.dirname, '..', 'migrations', 'sqlite')))
  using connection = new SqliteConnection(path, 'write')
  for (const statement of fillStatements('sqlite', posts, comments, users))
    connection.run({ text: statement, values: [] })
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
    countComments,
    'analyze',
  ]
}

/** Sets the number of comments of each post. */
export const countComments = `update posts set comment_count = counted.comments
  from (select post_id, count(*) as comments from comments group by post_id) as counted
  where counted.post_id = posts.id`
