import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from '../../src/storage/sql.ts'
import { createStore } from '../../src/storage/store.ts'
import { catalogue } from '../../src/storage/verbs.ts'
import { stopDatabaseClock } from '../faults/database-clock.ts'
import { startTestAppOn } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { engineKinds } from '../support/engines.ts'
import { countPayments } from '../support/ledger.ts'
import { bodyOf, type PaymentBody, pay } from '../support/rest.ts'

for (const kind of engineKinds) {
  test(`R-LIM-14: a purge deletes no key before 86,400 seconds, and every key after that, on ${kind.name}`, {
    skip: kind.skip,
  }, async () => {
    const clock = new TestClock()
    await using app = await startTestAppOn(kind, {}, { clock })
    await using engine = app.database.open(catalogue, { clock })
    const store = createStore(engine)
    // SQLite uses the clock of the service, PostgreSQL its own.
    const pass = async (milliseconds: number) => {
      clock.pass(milliseconds)
      if (kind.kind === 'postgres') await stopDatabaseClock(app.database, clock.now())
    }
    await pass(0)
    const first = bodyOf<PaymentBody>(await pay(app, 'k'), 201)
    for (const milliseconds of [0, 82_800_000, 3_599_000, 999]) {
      await pass(milliseconds)
      assert.equal(await store.purgeKeys(), 0, `${milliseconds} ms later`)
      assert.deepEqual(bodyOf<PaymentBody>(await pay(app, 'k'), 200), first)
    }
    assert.equal(await countPayments(engine), 1)
    await pass(1)
    await store.purgeKeys()
    assert.deepEqual(await engine.read(sql`select key from idempotency_keys`), [])
    assert.notEqual(bodyOf<PaymentBody>(await pay(app, 'k'), 201).id, first.id)
  })
}
