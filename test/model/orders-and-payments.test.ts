import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { forgetKeys } from '../faults/sabotage.ts'
import { assertLedger } from '../rest/ledger.ts'
import { engineKinds, sqlite } from '../support/engines.ts'
import { runs } from '../support/form.ts'
import { steps } from './commands.ts'
import { Model } from './model.ts'
import { type Service, type Session, Stage } from './service.ts'

const numRuns = runs(5, 400)

describe('Orders and payments after any sequence of operations', () => {
  for (const kind of engineKinds) {
    for (const policy of ['open', 'enforced'] as const) {
      it(`answer like a simple model, on ${kind.name}, under the policy ${policy}`, { skip: kind.skip }, async t => {
        await using stage = new Stage(kind, policy)
        let taken = 0
        const property = fc.asyncProperty(steps, async chosen => {
          await stage.run(service => compareWithModel(service, chosen))
          taken += [...chosen].length
        })
        await fc.assert(property, { numRuns })
        t.diagnostic(`${numRuns} runs, ${taken} steps`)
      })
    }
  }

  it('this test fails if a key can pay twice', async () => {
    await using stage = new Stage(sqlite, 'open', forgetKeys)
    const property = fc.asyncProperty(steps, chosen => stage.run(service => compareWithModel(service, chosen)))
    const { failed } = await fc.check(property, { numRuns: 100, seed: 8, endOnFailure: true })
    assert.equal(failed, true)
  })
})

type Steps = Parameters<typeof fc.asyncModelRun<Model, Session, false, Model>>[1]

/**
 * Checks that every answer equals that of the model, and at the end that the tables are consistent and equal to the
 * model.
 */
async function compareWithModel(service: Service, chosen: Steps): Promise<void> {
  const session = await service.enter()
  const before = await service.count()
  const model = new Model({ policy: service.policy, userIds: session.userIds, instant: () => service.instant })
  await fc.asyncModelRun(() => ({ model, real: session }), chosen)
  assert.deepEqual(await service.count(), {
    orders: before.orders + model.orders.filter(({ status }) => status !== 'gone').length,
    payments: before.payments + model.payments.length,
  })
  await assertLedger(service.engine)
}
