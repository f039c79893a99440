interface Item {
  readonly id: string
}

/** The maximum number of posts, unless the user loads older ones. */
export const mostPosts = 500

/** Adds an item, newest first. A list at or above the maximum does not grow. */
export function withNewest<Post extends Item>(posts: readonly Post[], post: Post): readonly Post[] {
  return [post, ...posts].sort((one, other) => byId(other, one)).slice(0, Math.max(mostPosts, posts.length))
}

export function byId(one: Item, other: Item): number {
  return Number(one.id) - Number(other.id)
}
