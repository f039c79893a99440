import DataLoader from 'dataloader'

export const typeDefs = `
  scalar DateTime
  type User { id: ID! name: String! email: String! avatar: String createdAt: DateTime! posts(limit: Int = 10): [Post!]! }
  type Post {
    id: ID! title: String! content: String! likes: Int! publishedAt: DateTime
    author: User! comments(limit: Int = 10): [Comment!]!
  }
  type Comment { id: ID! text: String! author: User! post: Post! }
  type Query { post(id: ID!): Post posts(limit: Int = 10, offset: Int = 0, after: ID): [Post!]! }
  type Mutation {
    likePost(id: ID!): Post!
    createPost(title: String!, content: String!): Post!
    addComment(postId: ID!, text: String!): Comment!
  }
  type Subscription { postAdded: Post! commentAdded(postId: ID!): Comment! }
`

/** For GraphQL Armor: six levels, and a refusal is an error of validation as any other. */
export const depthLimit = {
  n: 6,
  propagateOnRejection: false,
  onReject: [(context, error) => context.reportError(error)],
}

/** Resolvers over batched look-ups. `events` is the server's own way of publishing. */
export function resolversFor(database, events) {
  return {
    Query: {
      post: (_, { id }) => database.post(Number(id)),
      posts: (_, { limit, offset, after }) =>
        database.posts({ limit, offset, after: after == null ? null : Number(after) }),
    },
    Mutation: {
      likePost: (_, { id }) => database.like(Number(id)),
      createPost(_, { title, content }, context) {
        const post = database.createPost(title, content)
        events.postAdded(post, context)
        return post
      },
      addComment(_, { postId, text }, context) {
        const comment = database.addComment(Number(postId), text)
        events.commentAdded(comment, context)
        return comment
      },
    },
    Subscription: {
      postAdded: { subscribe: (_, __, context) => events.posts(context), resolve: ({ postAdded }) => postAdded },
      commentAdded: {
        subscribe: (_, { postId }, context) => events.comments(postId, context),
        resolve: ({ commentAdded }) => commentAdded,
      },
    },
    User: { createdAt: user => user.created_at },
    Post: { publishedAt: post => post.published_at },
  }
}

/** The relations by DataLoader, for servers that have nothing of their own. */
export const relations = {
  User: { posts: ({ id }, { limit }, { loaders }) => loaders.posts.load({ id, limit }) },
  Post: {
    author: (post, _, { loaders }) => loaders.users.load(post.author_id),
    comments: ({ id }, { limit }, { loaders }) => loaders.comments.load({ id, limit }),
  },
  Comment: {
    author: (comment, _, { loaders }) => loaders.users.load(comment.author_id),
    post: (comment, _, { loaders }) => loaders.postsById.load(comment.post_id),
  },
}

/** Loaders of one request. Those of a subscription must not keep rows from one event to the next. */
export function loadersOf(database, { cache = true } = {}) {
  const byLimit = read => async keys => {
    const [{ limit }] = keys
    if (keys.some(key => key.limit !== limit)) return keys.map(key => read([key.id], key.limit)[0])
    const ids = [...new Set(keys.map(({ id }) => id))]
    const found = new Map(read(ids, limit).map((rows, at) => [ids[at], rows]))
    return keys.map(({ id }) => found.get(id))
  }
  const cacheKeyFn = ({ id, limit }) => `${id} ${limit}`
  return {
    users: new DataLoader(async ids => database.usersByIds(ids), { cache }),
    postsById: new DataLoader(async ids => database.postsByIds(ids), { cache }),
    comments: new DataLoader(byLimit(database.commentsOf), { cache, cacheKeyFn }),
    posts: new DataLoader(byLimit(database.postsOf), { cache, cacheKeyFn }),
  }
}
