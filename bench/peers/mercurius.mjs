import Fastify from 'fastify'
import mercurius from 'mercurius'
import { openDatabase } from './database.mjs'
import { announce } from './listen.mjs'
import { resolversFor, typeDefs } from './schema.mjs'

// Mercurius 16 on Fastify, with its loaders, its just-in-time compiler from the first request on, its limit of depth, and
// its own subscriptions, which speak graphql-transport-ws.
const database = openDatabase(process.argv[2])
const events = {
  posts: ({ pubsub }) => pubsub.subscribe('post'),
  comments: (postId, { pubsub }) => pubsub.subscribe(`comment ${postId}`),
  postAdded: (post, { pubsub }) => pubsub.publish({ topic: 'post', payload: { postAdded: post } }),
  commentAdded: (comment, { pubsub }) =>
    pubsub.publish({ topic: `comment ${comment.post_id}`, payload: { commentAdded: comment } }),
}

/** One look-up for all the queries that were collected, if they ask for the same number. */
const lists = read => async queries => {
  const [{ params }] = queries
  if (queries.some(query => query.params.limit !== params.limit))
    return queries.map(({ obj, params }) => read([obj.id], params.limit)[0])
  const ids = [...new Set(queries.map(({ obj }) => obj.id))]
  const found = new Map(read(ids, params.limit).map((rows, at) => [ids[at], rows]))
  return queries.map(({ obj }) => found.get(obj.id))
}
const one = (read, column) => async queries => {
  const ids = [...new Set(queries.map(({ obj }) => obj[column]))]
  const found = new Map(read(ids).map(row => [row.id, row]))
  return queries.map(({ obj }) => found.get(obj[column]))
}
const author = one(database.usersByIds, 'author_id')

const app = Fastify()
await app.register(mercurius, {
  schema: typeDefs,
  resolvers: resolversFor(database, events),
  loaders: {
    User: { posts: lists(database.postsOf) },
    Post: { author, comments: lists(database.commentsOf) },
    Comment: { author, post: one(database.postsByIds, 'post_id') },
  },
  jit: 1,
  queryDepth: 6,
  subscription: true,
})
await app.listen({ port: 0, host: '127.0.0.1' })
announce(app.server.address().port)
