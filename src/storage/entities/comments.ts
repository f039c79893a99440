import type { Reach } from '../../core/access.ts'
import type { Change } from '../../core/store.ts'
import { queued, recordOf, sql } from '../sql.ts'
import { timeOfUpdate, updatedAtOf } from '../updated-at.ts'
import type { Steps } from '../verb.ts'
import { eventAbout } from './outbox.ts'

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
  yield eventAbout('comment-added', Number(post[0]), id, traceparent)
  return id
}

export function* updateComment(
  { commentId, text, reach, ifUpdatedAt }: Omit<Extract<Change, { kind: 'update a comment' }>, 'show'>,
  traceparent: string | null,
): Steps<number | 'comment absent' | 'not permitted' | 'comment changed'> {
  const comment = yield* lockComment(commentId)
  if (comment === undefined) return 'comment absent'
  const { id, postId, authorId, updatedAt, now } = comment
  if (reach !== 'everyone' && reach !== authorId) return 'not permitted'
  const at = timeOfUpdate(updatedAt, now, ifUpdatedAt)
  if (at === undefined) return 'comment changed'
  yield queued(sql`update comments set text = ${text}, updated_at = ${at} where id = ${id}`)
  yield eventAbout('comment-updated', postId, id, traceparent)
  return id
}

/** Returns whether there was a comment to delete. */
export function* deleteComment(
  commentId: number | null,
  reach: Reach,
  traceparent: string | null,
): Steps<boolean | 'not permitted'> {
  const comment = yield* lockComment(commentId)
  if (comment === undefined) return false
  const { id, postId, authorId, postAuthorId } = comment
  if (reach !== 'everyone' && reach !== authorId && reach !== postAuthorId) return 'not permitted'
  yield eventAbout('comment-deleted', postId, id, traceparent)
  yield queued(sql`delete from comments where id = ${id}`)
  return true
}

interface LockedComment {
  readonly id: number
  readonly authorId: number
  readonly updatedAt: string
  readonly now: string
  readonly postId: number
  readonly postAuthorId: number
}

const readById = `select id, author_id, ${updatedAtOf('updated_at', 'created_at')}, now_plus(0) from comments where id = $1`
const lockedCommentOf = recordOf<LockedComment>('id', 'authorId', 'updatedAt', 'now', 'postId', 'postAuthorId')

function* lockComment(id: number | null): Steps<LockedComment | undefined> {
  const lock = sql`select id, author_id from posts
                   where id = (select post_id from comments where id = ${id}) for update`
  const next = { text: readById, values: [id] }
  const [post] = yield { ...lock, next }
  // Read after the lock: another transaction may have deleted the comment before.
  const [comment] = post === undefined ? [] : yield next
  return comment && post && lockedCommentOf([...comment, ...post])
}
