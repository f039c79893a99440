import { hash, verify } from 'node:crypto'
import { createServer } from 'node:http'
import { sqliteDialect } from '../../src/storage/select/dialect.ts'
import { compile } from '../../src/storage/select/select.ts'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import { operations } from '../queries.ts'
import { openDatabase } from './database.mjs'
import { publicKey } from './keys.mjs'
import { listen } from './listen.mjs'

// The least that can answer: a node:http handler that runs the statement and writes what it returns. No routing, no
// checks, no headers beyond the necessary.
const path = process.argv[2]
const database = openDatabase(path)
const connection = new SqliteConnection(path, 'read')
const statements = new Map()
for (const { query, selection, values } of Object.values(operations)) {
  if (selection && values) statements.set(query, { text: compile(selection, sqliteDialect), values })
}
const key = publicKey()
const known = new Map()

const server = createServer((request, response) => {
  const { method, url = '' } = request
  if (method === 'POST') return receive(request, body => write(url, body, request, response))
  if (url === '/users/me') return answer(response, 200, JSON.stringify(database.user(caller(request))))
  if (url.startsWith('/users?')) {
    const query = new URLSearchParams(url.slice(7))
    return answer(response, 200, JSON.stringify(database.users(Number(query.get('after')), Number(query.get('limit')))))
  }
  const isTagged = url.startsWith('/api/')
  const body = JSON.stringify(database.user(Number(url.slice(isTagged ? 11 : 7))))
  if (isTagged) {
    const etag = tagOf(body)
    if (request.headers['if-none-match'] === etag) return response.writeHead(304, { etag }).end()
    response.setHeader('etag', etag)
  }
  return answer(response, 200, body)
})

function write(url, body, request, response) {
  const sent = JSON.parse(body)
  if (url === '/graphql') {
    const { id, after, offset } = sent.variables
    if (sent.query === operations.like.query) {
      const { id: liked, likes } = database.like(Number(id))
      return answer(response, 200, JSON.stringify({ data: { likePost: { id: String(liked), likes } } }))
    }
    const { text, values } = statements.get(sent.query)
    const [row] = connection.run({ text, values: values(Number(id ?? after ?? offset)) })
    return answer(response, 200, `{"data":${row[0]}}`)
  }
  if (url === '/users') {
    const user = database.createUser(sent.name, sent.email)
    return answer(response, 201, JSON.stringify(user), `/users/${user.id}`)
  }
  const { isNew, payment } = database.pay(String(request.headers['idempotency-key']), sent.amount)
  answer(response, isNew ? 201 : 200, JSON.stringify(payment), `/payments/${payment.id}`)
}

function receive(request, done) {
  let received = ''
  request.setEncoding('utf8').on('data', text => {
    received += text
  })
  request.on('end', () => done(received))
}

function answer(response, status, body, location) {
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    ...(location && { location }),
  })
  response.end(body)
}

/** The id in the token, whose signature is verified the first time that it comes. */
function caller(request) {
  const token = request.headers.authorization?.slice('Bearer '.length) ?? ''
  const before = known.get(token)
  if (before !== undefined) return before
  const [head = '', claims = '', signature = ''] = token.split('.')
  const isGood = verify(null, Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, 'base64url'))
  if (!isGood) throw new Error('The benchmark sends good tokens only')
  const id = Number(JSON.parse(Buffer.from(claims, 'base64url').toString()).sub)
  if (known.size >= 10_000) known.clear()
  known.set(token, id)
  return id
}

function tagOf(body) {
  return `"${hash('sha1', body, 'base64url')}"`
}

listen(server)
