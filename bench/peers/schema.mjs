import { randomUUID } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import DataLoader from 'dataloader'
import { createPubSub, createSchema } from 'graphql-yoga'

// The same types over the same tables, resolved field by field with batched look-ups, as such services are usually built.
export function peerSchema(path) {
  const database = new DatabaseSync(path)
  database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on')
  const insert = database.prepare(
    'insert into posts (author_id, title, content, published_at) values (1, ?, ?, ?) returning *',
  )
  const insertComment = database.prepare(
    'insert into comments (author_id, post_id, text, created_at) values (1, ?, ?, ?) returning *',
  )
  const ofAuthor = database.prepare('select * from posts where author_id = ? order by id desc limit ? offset ?')
  const ofPost = database.prepare('select * from comments where post_id = ? order by id limit ? offset ?')
  const newest = database.prepare('select * from posts order by id desc limit ? offset ?')
  const usersByIds = ids =>
    database.prepare(`select * from users where id in (${ids.map(() => '?').join(', ')})`).all(...ids)
  const events = createPubSub()
  const context = () => ({
    users: new DataLoader(async ids => {
      const found = new Map(usersByIds([...ids]).map(user => [user.id, user]))
      return ids.map(id => found.get(id))
    }),
  })
  const schema = createSchema({
    typeDefs: `
      type User { id: ID! name: String! email: String! avatar: String posts(limit: Int, offset: Int): [Post!]! }
      type Post { id: ID! title: String! content: String! likes: Int! publishedAt: String author: User! comments(limit: Int, offset: Int): [Comment!]! }
      type Comment { id: ID! text: String! author: User! }
      type Query { posts(limit: Int, offset: Int): [Post!]! }
      type Mutation { createPost(title: String!, content: String!): Post! addComment(postId: ID!, text: String!): Comment! }
      type Subscription { postAdded: Post! commentAdded(postId: ID!): Comment! }
    `,
    resolvers: {
      Query: { posts: (_, { limit = 10, offset = 0 }) => newest.all(limit, offset) },
      Mutation: {
        createPost(_, { title, content }) {
          const post = insert.get(title, content, new Date().toISOString())
          events.publish('postAdded', post)
          return post
        },
        addComment(_, { postId, text }) {
          const comment = insertComment.get(Number(postId), text, new Date().toISOString())
          events.publish('commentAdded', postId, comment)
          return comment
        },
      },
      Subscription: {
        postAdded: { subscribe: () => events.subscribe('postAdded'), resolve: post => post },
        commentAdded: {
          subscribe: (_, { postId }) => events.subscribe('commentAdded', postId),
          resolve: comment => comment,
        },
      },
      User: { posts: ({ id }, { limit = 10, offset = 0 }) => ofAuthor.all(id, limit, offset) },
      Post: {
        publishedAt: post => post.published_at,
        author: (post, _, { users }) => users.load(post.author_id),
        comments: ({ id }, { limit = 10, offset = 0 }) => ofPost.all(id, limit, offset),
      },
      Comment: { author: (comment, _, { users }) => users.load(comment.author_id) },
    },
  })
  return { schema, context, instance: randomUUID() }
}
