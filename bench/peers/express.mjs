import { createServer } from 'node:http'
import express from 'express'
import { jwtVerify } from 'jose'
import { openDatabase } from './database.mjs'
import { publicKey } from './keys.mjs'
import { listen } from './listen.mjs'

// Express 5 as its guide of performance says: NODE_ENV=production, no synchronous work besides the database's.
const database = openDatabase(process.argv[2])
const key = publicKey()
const app = express()
app.disable('x-powered-by')
app.use(express.json())

app.get('/users/me', async (request, response) => {
  const token = request.get('authorization')?.slice('Bearer '.length) ?? ''
  try {
    const { payload } = await jwtVerify(token, key, { algorithms: ['EdDSA'], issuer: 'duet' })
    response.json(database.user(Number(payload.sub)))
  } catch {
    response.status(401).json({ error: 'The token is not valid' })
  }
})

// res.json sets an ETag and answers If-None-Match by itself, at every path.
app.get(['/users/:id', '/api/users/:id'], (request, response) => {
  const user = database.user(Number(request.params.id))
  if (user === undefined) response.status(404).json({ error: 'User not found' })
  else response.json(user)
})

app.get('/users', (request, response) => {
  const { after = 0, limit = 1000 } = request.query
  response.json(database.users(Number(after), Number(limit)))
})

app.post('/users', (request, response) => {
  const { name, email } = request.body
  if (!name || !email) return response.status(400).json({ error: 'Name and email required' })
  const user = database.createUser(name, email)
  response.status(201).location(`/users/${user.id}`).json(user)
})

app.post('/payments', (request, response) => {
  const key = request.get('idempotency-key')
  if (!key) return response.status(400).json({ error: 'Idempotency-Key header required' })
  const { isNew, payment } = database.pay(key, request.body.amount)
  if (isNew) response.status(201).location(`/payments/${payment.id}`)
  else response.set('Idempotent-Replayed', 'true')
  response.json(payment)
})

listen(createServer(app))
