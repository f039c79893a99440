interface Item {
  readonly id: string
}

/** So many posts are shown, unless a person asks for older ones. */
export const mostPosts = 500

/** The list with one more item, newest first and not longer than it was, if it is long already. */
export function withNewest<Post extends Item>(posts: readonly Post[], post: Post): readonly Post[] {
  return [post, ...posts].sort((one, other) => byId(other, one)).slice(0, Math.max(mostPosts, posts.length))
}

export function byId(one: Item, other: Item): number {
  return Number(one.id) - Number(other.id)
}
