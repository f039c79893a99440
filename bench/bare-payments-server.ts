import { createServer } from 'node:http'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { loadMigrations } from '../src/storage/migrate.ts'
import { migrateSqlite } from '../src/storage/sqlite/file.ts'

// The least that can make a payment once per key and durably: look the key up, insert two rows, commit, answer.
const path = process.argv[2] ?? ''
migrateSqlite(path, loadMigrations(join(import.meta.dirname, '..', 'migrations', 'sqlite')))
const database = new DatabaseSync(path)
database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on')
const find = database.prepare(
  "select payment_id from idempotency_keys where coalesce(caller_id, 0) = 0 and scope = '/payments' and key = ?",
)
const pay = database.prepare('insert into payments (amount_cents, created_at) values (?, ?) returning id, created_at')
const claim = database.prepare(
  "insert into idempotency_keys (scope, key, payment_id, expires_at) values ('/payments', ?, ?, ?)",
)

const server = createServer((request, response) => {
  let received = ''
  request.setEncoding('utf8').on('data', text => {
    received += text
  })
  request.on('end', () => {
    const { amount } = JSON.parse(received)
    const key = String(request.headers['idempotency-key'])
    const now = Date.now()
    database.exec('begin immediate')
    if (find.get(key) !== undefined) throw new Error('The benchmark sends each key once')
    const row = pay.get(Math.round(amount * 100), new Date(now).toISOString())
    claim.run(key, Number(row?.id), new Date(now + 86_400_000).toISOString())
    database.exec('commit')
    const body = JSON.stringify({ id: row?.id, amount, order_id: null, created_at: row?.created_at })
    response.writeHead(201, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      location: `/payments/${row?.id}`,
    })
    response.end(body)
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') console.log(`http://127.0.0.1:${address.port}/health`)
})
