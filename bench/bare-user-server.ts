import { createServer } from 'node:http'
import { DatabaseSync } from 'node:sqlite'

// The least that can answer GET /users/<id>: a node:http handler, the same read, JSON.stringify.
const database = new DatabaseSync(process.argv[2] ?? '', { readOnly: true })
const read = database.prepare('select id, name, email, age, avatar from users where id = ?')

const server = createServer((request, response) => {
  const user = read.get(Number(request.url?.slice(7)))
  const body = JSON.stringify(user)
  response.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
  })
  response.end(body)
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') console.log(`http://127.0.0.1:${address.port}/health`)
})
