import type { Reach } from '../../core/access.ts'
import { queued, sql } from '../sql.ts'
import type { Steps } from '../verb.ts'

/**
 * The changes of comments. A transaction that adds, changes or deletes comments of a post locks the post first. Triggers
 * of the database keep the number of comments in the post's row.
 */
export function* addComment(
  postId: number | null,
  authorId: number | null,
  text: string,
  traceparent: string | null,
): Steps<number | undefined> {
  const lock = sql`select id from posts where id = ${postId} for no key update`
  const next = sql`insert into comments (post_id, author_id, text, created_at)
                   select posts.id, users.id, ${text}, now_plus(0) from posts, users
                   where posts.id = ${postId} and users.id = ${authorId} returning id`
  const [post] = yield { ...lock, next }
  if (post === undefined) return undefined
  const [row] = yield next
  const id = Number(row?.[0])
  yield queued(sql`insert into outbox (kind, post_id, comment_id, created_at, traceparent)
                   values ('comment-added', ${postId}, ${id}, now_plus(0), ${traceparent})`)
  return id
}

export function* updateComment(
  id: number | null,
  text: string,
  reach: Reach,
): Steps<number | 'comment absent' | 'not permitted'> {
  const comment = yield* lockComment(id)
  if (comment === undefined) return 'comment absent'
  const [found, author] = comment
  if (reach !== 'everyone' && reach !== author) return 'not permitted'
  yield queued(sql`update comments set text = ${text} where id = ${id}`)
  return found
}

/** Returns whether there was a comment to delete. */
export function* deleteComment(id: number | null, reach: Reach): Steps<boolean | 'not permitted'> {
  const comment = yield* lockComment(id)
  if (comment === undefined) return false
  const [, author, postAuthor] = comment
  if (reach !== 'everyone' && reach !== author && reach !== postAuthor) return 'not permitted'
  yield queued(sql`delete from comments where id = ${id}`)
  return true
}

/** Returns the ids of the comment, of its author, and of the author of its post. */
function* lockComment(id: number | null): Steps<readonly [id: number, author: number, postAuthor: number] | undefined> {
  const lock = sql`select id, author_id from posts
                   where id = (select post_id from comments where id = ${id}) for update`
  const next = sql`select id, author_id from comments where id = ${id}`
  const [post] = yield { ...lock, next }
  // Read after the lock: another transaction may have deleted the comment before.
  const [comment] = post === undefined ? [] : yield next
  return comment && [Number(comment[0]), Number(comment[1]), Number(post?.[1])]
}
