import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { etag } from 'hono/etag'
import { jwt } from 'hono/jwt'
import { openDatabase } from './database.mjs'
import { publicKey } from './keys.mjs'
import { announce, keepConnections } from './listen.mjs'

// Hono on its adapter for Node, with its own middleware for ETags and tokens.
const database = openDatabase(process.argv[2])
const { subtle } = globalThis.crypto
const key = await subtle.importKey('jwk', publicKey().export({ format: 'jwk' }), { name: 'Ed25519' }, true, ['verify'])
const app = new Hono()

app.get('/users/me', jwt({ secret: key, alg: 'EdDSA', verification: { iss: 'duet' } }), context =>
  context.json(database.user(Number(context.get('jwtPayload').sub))),
)

const readUser = context => {
  const user = database.user(Number(context.req.param('id')))
  return user === undefined ? context.json({ error: 'User not found' }, 404) : context.json(user)
}
app.get('/users/:id', readUser)
// With ETags only where the benchmark asks for them.
app.get('/api/users/:id', etag(), readUser)

app.get('/users', context => {
  const { after = 0, limit = 1000 } = context.req.query()
  return context.json(database.users(Number(after), Number(limit)))
})

app.post('/users', async context => {
  const { name, email } = await context.req.json()
  if (!name || !email) return context.json({ error: 'Name and email required' }, 400)
  const user = database.createUser(name, email)
  return context.json(user, 201, { location: `/users/${user.id}` })
})

app.post('/payments', async context => {
  const key = context.req.header('idempotency-key')
  if (!key) return context.json({ error: 'Idempotency-Key header required' }, 400)
  const { isNew, payment } = database.pay(key, (await context.req.json()).amount)
  if (isNew) return context.json(payment, 201, { location: `/payments/${payment.id}` })
  return context.json(payment, 200, { 'idempotent-replayed': 'true' })
})

keepConnections(serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => announce(port)))
