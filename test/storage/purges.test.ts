import assert from 'node:assert/strict'
import { it } from 'node:test'
import { type Statement, sql } from '../../src/storage/sql.ts'
import { startTestApp } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { tokenKeys } from '../support/keys.ts'
import { catalogue } from './contract-verbs.ts'

for (const kind of engineKinds) {
  it(`a service that runs for a minute deletes exactly the events older than an hour and a minute, the idempotency keys that have expired, and such password resets, on ${kind.name}`, {
    skip: kind.skip,
  }, async t => {
    await using database = await kind.create()
    await using engine = database.open(catalogue)
    await engine.write('run', [
      ...[7_200, 3_720, 3_600, 60].map(insertEvent),
      ...[-60, 60].map(insertReset),
      sql`insert into payments (amount_cents, created_at) values (1, now_plus(0))`,
      ...[-3_600, -60, 3_600, 60].map(insertKey),
    ])
    t.mock.timers.enable({ apis: ['setInterval'] })
    {
      // A mocked timer is only in this thread.
      await using _app = await startTestApp({ DATABASE_URL: database.url, TOKEN_KEYS: tokenKeys, THREADS: '1' })
      t.mock.timers.tick(60_000)
    } // stops the service, which waits for the running purge
    t.mock.timers.reset()
    assert.deepEqual(await engine.read(sql`select post_id from outbox order by id`), [[3_600], [60]])
    assert.deepEqual(await engine.read(sql`select email_key from password_resets`), [['60']])
    assert.deepEqual(await engine.read(sql`select key from idempotency_keys order by id`), [['3600'], ['60']])
  })
}

/** An event of this age in seconds, which is also the id of its post. */
const insertEvent = (age: number): Statement =>
  sql`insert into outbox (kind, post_id, created_at) values ('post-added', ${age}, now_plus(${-age}))`

/** The mail is sent. */
function insertReset(left: number): Statement {
  return sql`insert into password_resets (email_key, requested_at, expires_at)
             values (${String(left)}, now_plus(0), now_plus(${left}))`
}

/** A key that expires in so many seconds. */
function insertKey(left: number): Statement {
  return sql`insert into idempotency_keys (scope, key, payment_id, expires_at)
             select '/payments', ${String(left)}, id, now_plus(${left}) from payments`
}
