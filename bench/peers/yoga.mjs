import { setMaxListeners } from 'node:events'
import { createServer } from 'node:http'
import { maxDepthPlugin } from '@escape.tech/graphql-armor-max-depth'
import { useServer } from 'graphql-ws/use/ws'
import { createPubSub, createSchema, createYoga } from 'graphql-yoga'
import { WebSocketServer } from 'ws'
import { openDatabase } from './database.mjs'
import { listen } from './listen.mjs'
import { depthLimit, loadersOf, relations, resolversFor, typeDefs } from './schema.mjs'

// graphql-yoga 5 on node:http, DataLoader in the context, its own PubSub, and graphql-ws as its documentation shows. It
// keeps parsed and validated documents by itself.
const database = openDatabase(process.argv[2])
setMaxListeners(0) // thousands listen here on purpose
const pubsub = createPubSub()
const events = {
  posts: () => pubsub.subscribe('post'),
  comments: postId => pubsub.subscribe('comment', String(postId)),
  postAdded: post => pubsub.publish('post', { postAdded: post }),
  commentAdded: comment => pubsub.publish('comment', String(comment.post_id), { commentAdded: comment }),
}
const schema = createSchema({ typeDefs, resolvers: [resolversFor(database, events), relations] })
const yoga = createYoga({
  schema,
  // Operations over a socket come with it in their context.
  context: ({ socket }) => ({ loaders: loadersOf(database, { cache: socket === undefined }) }),
  plugins: [maxDepthPlugin(depthLimit)],
  graphiql: false,
  logging: false,
})
const server = createServer(yoga)
const sockets = new WebSocketServer({ server, path: yoga.graphqlEndpoint })
useServer(
  {
    execute: args => args.rootValue.execute(args),
    subscribe: args => args.rootValue.subscribe(args),
    onSubscribe: async (connection, _id, payload) => {
      const { schema, execute, subscribe, contextFactory, parse, validate } = yoga.getEnveloped({
        ...connection,
        req: connection.extra.request,
        socket: connection.extra.socket,
        params: payload,
      })
      const args = {
        schema,
        operationName: payload.operationName,
        document: parse(payload.query),
        variableValues: payload.variables,
        contextValue: await contextFactory(),
        rootValue: { execute, subscribe },
      }
      const errors = validate(args.schema, args.document)
      return errors.length > 0 ? errors : args
    },
  },
  sockets,
)
listen(server)
