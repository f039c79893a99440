import { queued, sql } from '../sql.ts'
import type { Steps } from '../verb.ts'
import { lockPosts } from './post-locks.ts'

/**
 * Deletes some of the user's comments, and some of the user's posts with their comments. Returns whether more may exist.
 * The caller has locked the user's row, so the user gets no new posts and comments meanwhile. All posts that change are
 * locked at once, in the order of their ids, before anything is changed.
 */
export function* deleteSomeContent(userId: number): Steps<boolean> {
  const posts = yield sql`select id from posts where author_id = ${userId} order by id limit ${contentPerStep}`
  const comments = yield sql`select id, post_id from comments where author_id = ${userId}
                             order by id limit ${contentPerStep}`
  const touched = [...posts.map(([id]) => Number(id)), ...comments.map(([, postId]) => Number(postId))]
  if (touched.length > 0) yield queued(lockPosts(touched))
  if (comments.length > 0) {
    const last = Number(comments.at(-1)?.[0])
    // Those on the user's own posts go with the posts, which tells of them.
    yield sql`insert into outbox (kind, post_id, comment_id, created_at)
              select 'comment-deleted', post_id, id, now_plus(0) from comments
              where author_id = ${userId} and id <= ${last}
                and (select author_id from posts where posts.id = post_id) <> ${userId} order by id`
    yield sql`delete from comments where author_id = ${userId} and id <= ${last}`
  }
  if (comments.length >= contentPerStep) return true
  if (posts.length === 0) return false
  const isMore = yield* deletePosts(userId, Number(posts.at(-1)?.[0]))
  return isMore || posts.length >= contentPerStep
}

/**
 * Takes the user off some orders and payments, which stay, and deletes some idempotency keys. Returns whether more may
 * exist. The foreign keys would do the same, with all of them in one statement.
 */
export function* releaseSomeRows(userId: number): Steps<boolean> {
  for (const [table, column, change] of referring) {
    const some = `select id from ${table} where ${column} = $1 limit ${rowsPerStep}`
    const rows = yield { text: `${change} where id in (${some}) returning 1`, values: [userId] }
    if (rows.length === rowsPerStep) return true
  }
  return false
}

const referring = [
  ['idempotency_keys', 'caller_id', 'delete from idempotency_keys'],
  ['payments', 'payer_id', 'update payments set payer_id = null'],
  ['orders', 'user_id', 'update orders set user_id = null'],
] as const

/** Posts and comments that are deleted per step, which may have 192 KiB each: up to fifty milliseconds of work. */
export const contentPerStep = 200
const rowsPerStep = 500

/** Deletes the user's posts up to this id, or the first of them if they have too many comments together. */
function* deletePosts(userId: number, last: number): Steps<boolean> {
  const posts = yield sql`select id, comment_count from posts where author_id = ${userId} and id <= ${last} order by id`
  let comments = 0
  const small = posts.filter(([, count]) => {
    comments += Number(count)
    return comments <= contentPerStep
  })
  if (small.length === 0 && posts[0] !== undefined) {
    yield* deleteSomeReplies(Number(posts[0][0]))
    return true
  }
  const through = Number(small.at(-1)?.[0] ?? 0)
  yield sql`insert into outbox (kind, post_id, created_at)
            select 'post-deleted', id, now_plus(0) from posts where author_id = ${userId} and id <= ${through} order by id`
  yield sql`delete from posts where author_id = ${userId} and id <= ${through}`
  return small.length < posts.length
}

/** Of a post with too many comments to be deleted at once. The event about the post tells of them. */
export function* deleteSomeReplies(postId: number): Steps<void> {
  const [[count, last = null] = []] = yield sql`select count(*), max(id) from (
    select id from comments where post_id = ${postId} order by id limit ${contentPerStep}) as first`
  yield sql`delete from comments where post_id = ${postId} and id <= ${last}`
  // If the number is wrong, the deletion comes to an end nevertheless.
  if (Number(count) < contentPerStep) yield sql`update posts set comment_count = 0 where id = ${postId}`
}
