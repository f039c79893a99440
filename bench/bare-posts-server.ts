import { createServer } from 'node:http'
import { sqliteDialect } from '../src/storage/select/dialect.ts'
import { compile } from '../src/storage/select/select.ts'
import { SqliteConnection } from '../src/storage/sqlite/connection.ts'
import { tenPostsSelection, tenPostsValues } from './ten-posts.ts'

// The least that can answer the query: a node:http handler that runs the same prepared statement and writes its text.
const connection = new SqliteConnection(process.argv[2] ?? '', 'read')
const text = compile(tenPostsSelection, sqliteDialect)

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    const [row] = connection.run({ text, values: tenPostsValues(Number(request.headers['x-page'] ?? 0)) })
    const body = `{"data":${row?.[0]}}`
    response.writeHead(200, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
    })
    response.end(body)
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') console.log(`http://127.0.0.1:${address.port}/health`)
})
