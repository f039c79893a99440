import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { engineKinds, type TestDatabase } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { assertSound, History, summarise } from './history.ts'
import { Instance } from './instance.ts'
import { judgeOn } from './judgement.ts'
import { attempt, resolveUnknowns, runWorkers } from './payers.ts'
import { forgetKeys } from './sabotage.ts'
import { Wire } from './wire.ts'

const payers = 16
const payments = inForm(50, 2000)

for (const kind of engineKinds) {
  describe(`F6: a lost answer of a server on ${kind.name}`, { skip: kind.skip }, () => {
    let parts: AsyncDisposableStack
    let history: History
    let database: TestDatabase
    let instance: Instance
    let wire: Wire
    beforeEach(async () => {
      parts = new AsyncDisposableStack()
      history = new History()
      database = parts.use(await kind.create())
      instance = parts.use(await Instance.start(database))
      wire = parts.use(await Wire.to({ host: '127.0.0.1', port: instance.port }))
    })
    afterEach(() => parts.disposeAsync())

    const moments: readonly (readonly [name: string, lose: () => void])[] = [
      ['once the request has passed', () => loseAfterRequest(wire)],
      ['while the answer comes', () => loseWithinAnswer(wire)],
    ]
    for (const [name, lose] of moments) {
      it(`leaves one payment for each key when the connection is cut ${name} and the client repeats its request`, async t => {
        lose()
        const { verdict, unanswered } = await payAndAskAgain(database, wire, history)
        t.diagnostic(`${unanswered} answers lost: ${summarise(verdict)}`)
        assert.equal(unanswered, payments)
        assertSound(verdict)
        assert.deepEqual(instance.faults, [])
      })
    }

    it('this test fails if payments are stored without their keys', async () => {
      await forgetKeys(database)
      loseWithinAnswer(wire)
      const { verdict } = await payAndAskAgain(database, wire, history)
      assert.equal(verdict.offences.double.length, payments)
    })
  })
}

/** Every payer loses every answer, and then repeats its request over a working connection. */
async function payAndAskAgain(database: TestDatabase, wire: Wire, history: History) {
  const url = `http://127.0.0.1:${wire.port}`
  let left = payments
  let unanswered = 0
  await runWorkers(payers, async () => {
    while (left-- > 0) if ((await attempt(history, url, history.intend())) === undefined) unanswered++
  })
  wire.fromClient = wire.fromServer = () => 'pass'
  await resolveUnknowns(history, url)
  return { verdict: await judgeOn(database, history), unanswered }
}

/** The server gets and processes the whole request; the client gets nothing. */
function loseAfterRequest(wire: Wire): void {
  wire.fromClient = (data, { client, server }) => {
    if (!data.includes('"amount"')) return 'pass'
    server.end(data)
    client.resetAndDestroy()
    return 'handled'
  }
  wire.fromServer = () => 'handled'
}

/** The client gets a part of the answer, of any length. */
function loseWithinAnswer(wire: Wire): void {
  wire.fromServer = (data, { client, server }) => {
    client.end(data.subarray(0, Math.floor(Math.random() * data.length)))
    server.destroy()
    return 'handled'
  }
}
