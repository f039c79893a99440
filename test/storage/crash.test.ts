import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, it } from 'node:test'
import { sql } from '../../src/storage/sql.ts'
import { timeoutsOf } from '../../src/storage/timeouts.ts'
import { type EngineKind, engineKinds, postgres, postgresAt, type TestDatabase } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { PostgresServer } from '../support/postgres.ts'
import { migrationsOf } from '../support/templates.ts'
import { catalogue, notes } from './contract-verbs.ts'

const rounds = inForm(2, 40)

for (const kind of engineKinds) {
  describe(`A server on ${kind.name} that is killed while it writes`, { skip: kind.skip }, () => {
    it('loses no acknowledged write', async t => {
      const { acknowledged, missing } = await killRepeatedly(kind, 'when acknowledged')
      t.diagnostic(`${rounds} kills, ${acknowledged} acknowledged, ${missing} missing`)
      assert.ok(acknowledged > rounds * 100)
      assert.equal(missing, 0)
    })

    it('this test fails if writes are acknowledged too early', async () => {
      const { missing } = await killRepeatedly(kind, 'too early')
      assert.notEqual(missing, 0)
    })
  })
}

describe('A PostgreSQL server that is killed while it is written to', { skip: postgres.skip }, () => {
  it('loses no acknowledged write', async () => {
    assert.deepEqual(await killDatabase({}), [])
  })

  it('this test fails if a write is acknowledged before it is durable', async () => {
    const careless = { synchronous_commit: 'off', wal_writer_delay: '10s' }
    assert.notDeepEqual(await killDatabase(careless), [])
  })
})

async function killRepeatedly(kind: EngineKind, when: string): Promise<{ acknowledged: number; missing: number }> {
  await using database = await kind.create()
  await database.migrate([...migrationsOf(kind.kind), notes])
  const acknowledged = new Set<string>()
  for (let round = 0; round < rounds; round++) await writeUntilKilled(database, `r${round}`, when, acknowledged)
  await using engine = database.open(catalogue)
  const stored = new Set((await engine.read(sql`select key from notes`)).map(([key]) => key))
  if (kind.kind === 'sqlite') {
    assert.deepEqual(await engine.read({ text: 'pragma integrity_check', values: [] }), [['ok']])
  }
  return { acknowledged: acknowledged.size, missing: [...acknowledged].filter(key => !stored.has(key)).length }
}

async function writeUntilKilled(
  database: TestDatabase,
  name: string,
  when: string,
  acknowledged: Set<string>,
): Promise<void> {
  const program = join(import.meta.dirname, 'crash-child.ts')
  const child = spawn(process.execPath, [program, database.kind, database.location, name, when], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = once(child, 'exit')
  const killAt = acknowledged.size + 150 + Math.floor(Math.random() * 500)
  for await (const key of createInterface(child.stdout)) {
    acknowledged.add(key)
    if (acknowledged.size === killAt) child.kill('SIGKILL')
  }
  const [, signal] = await gone
  assert.equal(signal, 'SIGKILL')
}

async function killDatabase(settings: Readonly<Record<string, string>>): Promise<string[]> {
  await using server = await PostgresServer.start(settings)
  const database = postgresAt(server.url)
  await database.migrate([...migrationsOf('postgres'), notes])
  // The wait is short, because nothing can be read while the server is down.
  await using engine = database.open(catalogue, { timeouts: timeoutsOf(1_000) })
  const acknowledged: string[] = []
  const writing = Array.from({ length: 8 }, async (_, hand) => {
    for (let index = 0; index < 10_000; index++) {
      await engine.write('put', `${hand}-${index}`, 'v')
      acknowledged.push(`${hand}-${index}`)
      if (acknowledged.length === 300) await server.end('SIGQUIT')
    }
  })
  const outcomes = await Promise.allSettled(writing)
  assert.ok(outcomes.every(({ status }) => status === 'rejected'))
  await server.resume()
  await using patient = database.open(catalogue)
  const stored = new Set((await patient.read(sql`select key from notes`)).map(([key]) => key))
  return acknowledged.filter(key => !stored.has(key))
}
