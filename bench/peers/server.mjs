import { createServer } from 'node:http'
import { ApolloServer, HeaderMap } from '@apollo/server'
import { useServer } from 'graphql-ws/use/ws'
import { createYoga } from 'graphql-yoga'
import { WebSocketServer } from 'ws'
import { peerSchema } from './schema.mjs'

// graphql-yoga or Apollo Server, with graphql-ws for subscriptions, as their documentation shows it.
const [kind, path] = process.argv.slice(2)
const { schema, context } = peerSchema(path)
const server = kind === 'yoga' ? yogaServer() : await apolloServer()

function yogaServer() {
  const yoga = createYoga({ schema, context, logging: false, graphiql: false, maskedErrors: false })
  const server = createServer(yoga)
  const sockets = new WebSocketServer({ server, path: '/graphql' })
  useServer(
    {
      execute: args => args.execute(args),
      subscribe: args => args.subscribe(args),
      // What Yoga documents for graphql-ws: every operation gets its envelope.
      onSubscribe: async ({ extra }, _id, payload) => {
        const { schema, execute, subscribe, contextFactory, parse, validate } = yoga.getEnveloped({
          req: extra.request,
          socket: extra.socket,
          params: payload,
        })
        const document = parse(payload.query)
        const args = {
          schema,
          operationName: payload.operationName,
          document,
          variableValues: payload.variables,
          contextValue: await contextFactory(),
          execute,
          subscribe,
        }
        const errors = validate(args.schema, args.document)
        return errors.length > 0 ? errors : args
      },
    },
    sockets,
  )
  return server
}

async function apolloServer() {
  const apollo = new ApolloServer({ schema })
  await apollo.start()
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', text => {
      body += text
    })
    request.on('end', async () => {
      const headers = new HeaderMap(Object.entries(request.headers))
      const answer = await apollo.executeHTTPGraphQLRequest({
        httpGraphQLRequest: { method: request.method, headers, search: '', body: JSON.parse(body) },
        context: async () => context(),
      })
      response.writeHead(answer.status ?? 200, Object.fromEntries(answer.headers))
      response.end(answer.body.string)
    })
  })
  const sockets = new WebSocketServer({ server, path: '/graphql' })
  useServer({ schema, context: () => context() }, sockets)
  return server
}

server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/health`))
