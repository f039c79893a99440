import { createServer } from 'node:http'
import pg from 'pg'
import { postgresDialect } from '../../src/storage/select/dialect.ts'
import { compile } from '../../src/storage/select/select.ts'
import { operations } from '../queries.ts'
import { listen } from './listen.mjs'

// The least that can answer from PostgreSQL: a node:http handler and the statement that Duet makes, prepared once on
// each of as many connections.
const pool = new pg.Pool({
  connectionString: process.argv[2],
  max: 10,
  options: '-c plan_cache_mode=force_generic_plan -c jit=off',
})
const statements = new Map()
for (const [name, { query, selection, values }] of Object.entries(operations)) {
  if (selection && values) statements.set(query, { name, text: compile(selection, postgresDialect), values })
}
const like = 'update posts set likes = likes + 1 where id = $1 returning id, likes'

const server = createServer((request, response) => {
  let received = ''
  request.setEncoding('utf8').on('data', text => {
    received += text
  })
  request.on('end', async () => {
    const { query, variables } = JSON.parse(received)
    const { id, after, offset } = variables
    const body = query === operations.like.query ? await liked(id) : await read(query, Number(id ?? after ?? offset))
    response.writeHead(200, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
    })
    response.end(body)
  })
})

async function read(query, variable) {
  const { name, text, values } = statements.get(query)
  const types = { getTypeParser: () => value => value }
  const { rows } = await pool.query({ name, text, values: [...values(variable)], rowMode: 'array', types })
  return `{"data":${rows[0][0]}}`
}

async function liked(id) {
  const { rows } = await pool.query({ name: 'like', text: like, values: [Number(id)] })
  return JSON.stringify({ data: { likePost: { id: String(rows[0].id), likes: rows[0].likes } } })
}

listen(server)
