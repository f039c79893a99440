import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { programMissing } from '../support/daemon.ts'
import { postgres } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { PostgresServer } from '../support/postgres.ts'
import { shared } from '../support/shared.ts'
import { impatient, waitUntil } from '../support/wait.ts'
import { startStage } from './sequencer-stage.ts'

const events = inForm(240, 10_000)

describe('The instance that gives events their positions', { skip: postgres.skip }, () => {
  const server = shared(() => PostgresServer.start())

  it('is killed while it holds their lock, behind PgBouncer or not, and PostgreSQL is restarted, beside transactions of others that stay open: all get each event once and in order', async t => {
    await using stage = await startStage(server, programMissing('pgbouncer') === undefined)
    await stage.openTransactions()
    for (const side of stage.sides) {
      const writing = stage.write(events / 3, side)
      await stage.killSequencer(side)
      await writing
    }
    const writing = stage.sides.map(side => stage.write(events / 3, side))
    await waitUntil(() => stage.answered.length >= 0.8 * events)
    await server.end('SIGINT')
    await server.resume()
    await stage.openTransactions()
    await Promise.all(writing)
    const { offences, told } = await stage.judge()
    t.diagnostic(`${told} events, transactions: ${stage.sides.map(({ sequencer }) => sequencer.sequenced)}`)
    assert.deepEqual(offences, [])
  })

  it('is stopped while it holds their lock: the other one goes on when PostgreSQL ends its transaction', async () => {
    await using stage = await startStage(server, false, impatient)
    const [first, second] = stage.sides
    await stage.write(20)
    const held = first.sequencer.holdNext()
    const writing = stage.write(5)
    await held
    first.instance.signal('SIGSTOP')
    assert.ok(await stage.isLocked())
    await stage.write(20, second)
    const last = stage.answered.at(-1) ?? assert.fail()
    await waitUntil(() => second.told.includes(last))
    first.instance.signal('SIGCONT')
    await writing
    assert.deepEqual((await stage.judge()).offences, [])
  })
})
