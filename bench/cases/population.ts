/** What the databases of most cases contain. */
export const population = { posts: 2000, comments: 10, users: 2000 } as const
