import { queued, type Statement } from '../sql.ts'
import type { Steps } from '../verb.ts'

/**
 * Row locks of PostgreSQL. Every transaction locks users first, then posts in the order of their ids, then comments. So
 * transactions never wait for each other in a circle. The lock of a post also protects its comments and their number.
 */
export function lockPosts(ids: Iterable<number>): Statement {
  const values = [...new Set(ids)].sort((one, other) => one - other)
  return { text: `select id from posts where id in (${places(values)}) order by id for update`, values }
}

/** Locks these posts, the posts of these comments, and the authors of all of them. */
export function* lockContent(postIds: readonly number[], commentIds: readonly number[]): Steps<void> {
  const posts = new Set(postIds)
  // A comment never moves to another post, so its post can be read before the lock.
  const text = `select post_id from comments where id in (${places(commentIds)})`
  for (const [id] of commentIds.length > 0 ? yield { text, values: commentIds } : []) posts.add(Number(id))
  if (posts.size === 0) return
  // When a row changes twice in one transaction, PostgreSQL checks its author again, which locks the author.
  yield queued(lockAuthors([...posts], commentIds))
  yield queued(lockPosts(posts))
}

/** One subquery for each author: given a set of them, PostgreSQL would read all users to find them in order. */
function lockAuthors(postIds: readonly number[], commentIds: readonly number[]): Statement {
  const ofPosts = postIds.map((_, index) => `(select author_id from posts where id = $${index + 1})`)
  const ofComments = commentIds.map(
    (_, index) => `(select author_id from comments where id = $${postIds.length + index + 1})`,
  )
  const authors = [...ofPosts, ...ofComments].join(', ')
  return {
    text: `select id from users where id in (${authors}) order by id for key share`,
    values: [...postIds, ...commentIds],
  }
}

export function places(ids: readonly number[]): string {
  return ids.map((_, index) => `$${index + 1}`).join(', ')
}
