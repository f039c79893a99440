import etag from '@fastify/etag'
import jwt from '@fastify/jwt'
import Fastify from 'fastify'
import { openDatabase } from './database.mjs'
import { publicKey } from './keys.mjs'
import { announce } from './listen.mjs'

// Fastify 5 with a schema for every body and answer, which it compiles validators and serializers from.
const database = openDatabase(process.argv[2])
const app = Fastify()
await app.register(jwt, {
  secret: { public: publicKey().export({ type: 'spki', format: 'pem' }) },
  // The cache knows tokens by their text, as Duet's does. By default it hashes each one, which fast-jwt calls slow.
  verify: { algorithms: ['EdDSA'], allowedIss: 'duet', cache: 10_000, cacheKeyBuilder: token => token },
})

const user = {
  type: 'object',
  properties: {
    id: { type: 'integer' },
    name: { type: 'string' },
    email: { type: 'string' },
    age: { type: 'integer' },
    avatar: { type: 'string' },
  },
}
const payment = {
  type: 'object',
  properties: {
    id: { type: 'integer' },
    amount: { type: 'number' },
    order_id: { type: ['integer', 'null'] },
    created_at: { type: 'string' },
  },
}

const authenticated = { onRequest: request => request.jwtVerify(), schema: { response: { 200: user } } }
app.get('/users/me', authenticated, async request => database.user(Number(request.user.sub)))

const byId = { params: { type: 'object', properties: { id: { type: 'integer' } } }, response: { 200: user } }
const readUser = async (request, reply) => {
  const found = database.user(request.params.id)
  if (found !== undefined) return found
  reply.code(404)
  return { error: 'User not found' }
}
app.get('/users/:id', { schema: byId }, readUser)
// With ETags only where the benchmark asks for them.
app.register(async tagged => {
  await tagged.register(etag)
  tagged.get('/api/users/:id', { schema: byId }, readUser)
})

const page = {
  type: 'object',
  properties: { after: { type: 'integer', default: 0 }, limit: { type: 'integer', default: 1000 } },
}
const listSchema = { querystring: page, response: { 200: { type: 'array', items: user } } }
app.get('/users', { schema: listSchema }, async ({ query }) => database.users(query.after, query.limit))

const newUser = {
  type: 'object',
  required: ['name', 'email'],
  properties: { name: { type: 'string', minLength: 1 }, email: { type: 'string', minLength: 1 } },
}
app.post('/users', { schema: { body: newUser, response: { 201: user } } }, async (request, reply) => {
  const created = database.createUser(request.body.name, request.body.email)
  reply.code(201).header('location', `/users/${created.id}`)
  return created
})

const paymentSchema = {
  body: { type: 'object', required: ['amount'], properties: { amount: { type: 'number', exclusiveMinimum: 0 } } },
  headers: { type: 'object', required: ['idempotency-key'], properties: { 'idempotency-key': { type: 'string' } } },
  response: { '2xx': payment },
}
app.post('/payments', { schema: paymentSchema }, async (request, reply) => {
  const { isNew, payment } = database.pay(request.headers['idempotency-key'], request.body.amount)
  if (isNew) reply.code(201).header('location', `/payments/${payment.id}`)
  else reply.header('idempotent-replayed', 'true')
  return payment
})

await app.listen({ port: 0, host: '127.0.0.1' })
announce(app.server.address().port)
