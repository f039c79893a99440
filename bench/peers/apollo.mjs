import { createServer } from 'node:http'
import { ApolloServer } from '@apollo/server'
import { ApolloServerPluginCacheControlDisabled } from '@apollo/server/plugin/disabled'
import { expressMiddleware } from '@as-integrations/express5'
import { maxDepthRule } from '@escape.tech/graphql-armor-max-depth'
import { makeExecutableSchema } from '@graphql-tools/schema'
import express from 'express'
import { PubSub } from 'graphql-subscriptions'
import { useServer } from 'graphql-ws/use/ws'
import { WebSocketServer } from 'ws'
import { openDatabase } from './database.mjs'
import { listen } from './listen.mjs'
import { depthLimit, loadersOf, relations, resolversFor, typeDefs } from './schema.mjs'

// Apollo Server 5 on Express, DataLoader in the context, graphql-ws and PubSub for subscriptions: as its documentation
// shows. It keeps parsed and validated documents by itself.
const database = openDatabase(process.argv[2])
const pubsub = new PubSub()
pubsub.ee.setMaxListeners(0)
const events = {
  posts: () => pubsub.asyncIterableIterator('post'),
  comments: postId => pubsub.asyncIterableIterator(`comment ${postId}`),
  postAdded: post => pubsub.publish('post', { postAdded: post }),
  commentAdded: comment => pubsub.publish(`comment ${comment.post_id}`, { commentAdded: comment }),
}
const schema = makeExecutableSchema({ typeDefs, resolvers: [resolversFor(database, events), relations] })
const apollo = new ApolloServer({
  schema,
  validationRules: [maxDepthRule(depthLimit)],
  csrfPrevention: true,
  // No field has a cache policy, and the plugin would look for one at each.
  plugins: [ApolloServerPluginCacheControlDisabled()],
})
await apollo.start()

const app = express()
app.disable('x-powered-by')
const context = async () => ({ loaders: loadersOf(database) })
app.use('/graphql', express.json(), expressMiddleware(apollo, { context }))
const server = createServer(app)
const sockets = new WebSocketServer({ server, path: '/graphql' })
useServer({ schema, context: () => ({ loaders: loadersOf(database, { cache: false }) }) }, sockets)
listen(server)
