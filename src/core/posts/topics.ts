import type { Event } from '../events.ts'

/** The subject of a subscription: new posts, or new comments on one post. */
export type Topic = { readonly kind: 'posts' } | { readonly kind: 'comments'; readonly postId: number }

/** The topic of an event, or `undefined` if nobody can subscribe to such events. */
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

export function isSameTopic(one: Topic, other: Topic | undefined): boolean {
  if (one.kind === 'posts' || other?.kind === 'posts') return one.kind === other?.kind
  return one.postId === other?.postId
}

/** The id of the post or comment that subscribers receive. If there is none, the topic has ended. */
export function subjectOf(event: Event): number | undefined {
  if (event.kind === 'post-added') return event.postId
  return event.kind === 'comment-added' ? event.commentId : undefined
}
