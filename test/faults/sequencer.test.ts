import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { programMissing } from '../support/daemon.ts'
import { postgres } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { PostgresServer } from '../support/postgres.ts'
import { impatient, waitUntil } from '../support/wait.ts'
import { Stage } from './sequencer-stage.ts'

const events = inForm(600, 10_000)

describe('The instance that gives events their positions', { skip: postgres.skip }, () => {
  let server: PostgresServer
  before(async () => {
    server = await PostgresServer.start()
  })
  after(() => server[Symbol.asyncDispose]())

  for (const { name, isPooled, skip } of [
    { name: 'beside transactions of others that stay open', isPooled: false, skip: false },
    { name: 'behind PgBouncer', isPooled: true, skip: programMissing('pgbouncer') ?? false },
  ]) {
    it(`is killed twice while it holds their lock, and PostgreSQL is restarted, ${name}: all get each event once and in order`, {
      skip,
    }, async t => {
      await using stage = await Stage.on(server, { isPooled })
      if (!isPooled) await stage.openTransactions()
      const writing = stage.write(events)
      for (const part of [0.2, 0.4]) {
        await waitUntil(() => stage.answered.length >= part * events)
        await stage.killSequencer()
      }
      await waitUntil(() => stage.answered.length >= 0.7 * events)
      await server.end('SIGINT')
      await server.resume()
      if (!isPooled) await stage.openTransactions()
      await writing
      const { offences, told } = await stage.judge()
      t.diagnostic(`${told} events, ${stage.sequenced.join(' and ')} transactions of the sequencers`)
      assert.deepEqual(offences, [])
    })
  }

  it('is stopped while it holds their lock: the other one goes on when PostgreSQL ends its transaction', async () => {
    await using stage = await Stage.on(server, { env: impatient })
    await stage.write(20)
    const held = stage.first.wire.holdNext()
    const writing = stage.write(5)
    await held
    stage.first.instance.signal('SIGSTOP')
    assert.ok(await stage.isLocked())
    await stage.write(20, stage.second)
    const last = stage.answered.at(-1) ?? assert.fail()
    await waitUntil(() => stage.second.told.includes(last))
    stage.first.instance.signal('SIGCONT')
    await writing
    assert.deepEqual((await stage.judge()).offences, [])
  })

  it('this test fails if it reads the last position without a lock', async t => {
    await using stage = await Stage.on(server, { isWithoutLock: true })
    let offences: readonly unknown[] = []
    for (let round = 0; round < 5 && offences.length === 0; round++) {
      await stage.write(600)
      ;({ offences } = await stage.judge(10_000)) // the log can be so wrong that no event gets a position any more
    }
    t.diagnostic(offences.join('; '))
    assert.notDeepEqual(offences, [])
  })
})
