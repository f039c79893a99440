import type { CommentData, Figures, PostData } from './documents.ts'

/** What is known of a comment. */
export interface Comment extends CommentData {
  /** Whether it arrived while the page was open. */
  readonly arrived: boolean
  /** The number of the latest event about it. */
  readonly seen: number
  /** Somebody deleted it while this user was editing it. */
  readonly gone?: boolean
}

/** What is known of a post. */
export interface Post extends PostData {
  readonly arrived: boolean
  readonly seen: number
  readonly gone?: boolean
  /** Absent while nobody reads them. Oldest first. */
  readonly comments?: readonly Comment[] | undefined
  /** Whether the service has more of them. */
  readonly moreComments?: boolean
}

/** The maximum number of posts in the feed, unless the user loads older ones. */
export const mostPosts = 500

/** Adds the id of a new post, newest first. A list at or above the maximum does not grow. */
export function withNewest(ids: readonly string[], id: string): readonly string[] {
  return newestFirst([id, ...ids]).slice(0, Math.max(mostPosts, ids.length))
}

/** Each id once. */
export function newestFirst(ids: readonly string[]): readonly string[] {
  return [...new Set(ids)].sort((one, other) => Number(other) - Number(one))
}

function byId(one: Comment, other: Comment): number {
  return Number(one.id) - Number(other.id)
}

/**
 * A post with what an answer or an event says. Answers may be late: an older text does not replace a newer one, likes
 * only grow, and the number of comments of a request sent before the latest event (`asked`) is not taken.
 */
export function withRead(known: Post, read: PostData, asked: number): Post {
  const text = read.updatedAt < known.updatedAt ? {} : read
  return withFigures({ ...known, ...text, likes: known.likes, commentCount: known.commentCount }, read, asked)
}

export function withFigures(known: Post, { likes, commentCount }: Figures, asked: number): Post {
  const counted = known.seen > asked ? known.commentCount : commentCount
  return counting({ ...known, likes: Math.max(known.likes, likes), commentCount: counted })
}

/** A post with a comment that was added or changed, once and in order. */
export function withComment(post: Post, comment: Comment): Post {
  const { comments } = post
  if (comments === undefined) return post
  const known = comments.find(({ id }) => id === comment.id)
  if (known === undefined) return counting({ ...post, comments: [...comments, comment].sort(byId) })
  if (comment.updatedAt < known.updatedAt) return post
  const changed = { ...known, ...comment, arrived: known.arrived }
  return { ...post, comments: comments.map(each => (each === known ? changed : each)) }
}

/** A post without a comment. With `kept`, its place stays. */
export function withoutComment(post: Post, id: string, kept: boolean): Post {
  const left = post.comments?.flatMap(each => (each.id !== id ? [each] : kept ? [{ ...each, gone: true }] : []))
  return counting({ ...post, comments: left })
}

/**
 * A post with the comments of an answer. `known` are those that stay: the ones before the answer, and those that
 * arrived after the request was sent.
 */
export function withComments(post: Post, read: readonly Comment[], known: readonly Comment[], more: boolean): Post {
  const comments = new Map<string, Comment>()
  for (const comment of [...known, ...read]) {
    const other = comments.get(comment.id)
    if (other === undefined || other.updatedAt <= comment.updatedAt) comments.set(comment.id, comment)
  }
  return counting({ ...post, comments: [...comments.values()].sort(byId), moreComments: more })
}

/** If all comments are shown, their number is that of those shown. */
function counting(post: Post): Post {
  if (post.comments === undefined || post.moreComments !== false) return post
  return { ...post, commentCount: post.comments.filter(({ gone }) => !gone).length }
}
