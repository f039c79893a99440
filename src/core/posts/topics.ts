import type { Event } from '../events.ts'

/** What a subscriber listens to: new posts, or new comments on one post. */
export type Topic = { readonly kind: 'posts' } | { readonly kind: 'comments'; readonly postId: number }

/** The topic that an event belongs to, if anybody may listen to it. */
export function topicOf(event: Event): Topic | undefined {
  switch (event.kind) {
    case 'post-added':
      return { kind: 'posts' }
    case 'comment-added':
    case 'post-deleted':
      return { kind: 'comments', postId: event.postId }
    case 'user-revoked':
      return undefined
  }
}

/** The id of the post or comment that subscribers are shown. Without one, there is nothing left to listen to. */
export function subjectOf(event: Event): number | undefined {
  if (event.kind === 'post-added') return event.postId
  return event.kind === 'comment-added' ? event.commentId : undefined
}
