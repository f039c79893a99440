import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { postgres, type TestDatabase } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { impatient } from '../support/wait.ts'
import { assertSound, History, summarise } from './history.ts'
import { type Server, startServer } from './instance.ts'
import { judgeOn } from './judgement.ts'
import { attempt, resolveUnknowns, runWorkers } from './payers.ts'
import { type Decision, Wire } from './wire.ts'

const payers = 16
const unknown = 'The outcome is unknown. Read before you repeat, or repeat with the same Idempotency-Key.'

describe('F4: a connection to PostgreSQL that is cut around COMMIT', { skip: postgres.skip }, () => {
  const parts = new AsyncDisposableStack()
  const history = new History()
  let database: TestDatabase
  let proxy: Wire
  let instance: Server
  let behind: Pick<TestDatabase, 'kind' | 'location'>
  before(async () => {
    database = parts.use(await postgres.create())
    proxy = parts.use(await Wire.to(new URL(database.location)))
    behind = { kind: 'postgres', location: proxy.through(database.location) }
    instance = parts.use(await startServer(behind))
  })
  after(() => parts.disposeAsync())

  it('leaves one payment for each key, and the client gets the result by repeating its request', async t => {
    const cuts = inForm(12, 300)
    for (const moment of ['cut before', 'cut after', 'cut long before'] as const) {
      const done = cutSomeCommits(proxy, moment, cuts)
      await runWorkers(payers, async () => {
        while (!done()) await attempt(history, instance.url, history.intend())
      })
    }
    proxy.fromClient = () => 'pass'
    await resolveUnknowns(history, instance.url)
    const verdict = await judgeOn(database, history)
    t.diagnostic(`${3 * cuts} commits cut: ${summarise(verdict)}`)
    assert.equal(verdict.unknowns, 0) // the server always answers, even without its database
    assertSound(verdict)
    assert.deepEqual(instance.faults, [])
  })

  it('is answered with 503 and the advice to repeat with the same key, which gets the result', async t => {
    const rounds = inForm(1, 10)
    await using hasty = await startServer(behind, impatient)
    for (let round = 0; round < rounds; round++) {
      for (const moment of ['cut before', 'cut after'] as const) {
        cutCommitAndAllThatFollows(proxy, moment)
        const intent = history.intend()
        const answer = await attempt(history, hasty.url, intent)
        assert.equal(answer?.status, 503)
        assert.deepEqual(JSON.parse(answer.body), { error: unknown })
        proxy.fromClient = () => 'pass'
        // Whether it was paid or not, the repeated request gets the right answer.
        assert.equal((await attempt(history, instance.url, intent))?.status, moment === 'cut after' ? 200 : 201)
      }
    }
    const verdict = await judgeOn(database, history)
    t.diagnostic(`${2 * rounds} commits cut, and what followed: ${summarise(verdict)} (both tests together)`)
    assertSound(verdict)
    assert.deepEqual([...instance.faults, ...hasty.faults], [])
  })
})

/** Selects every third commit, up to a maximum number. */
function cutSomeCommits(proxy: Wire, moment: Decision, cuts: number): () => boolean {
  let commits = 0
  proxy.fromClient = data => (isCommit(data) && ++commits % 3 === 0 ? moment : 'pass')
  return () => commits >= 3 * cuts
}

function cutCommitAndAllThatFollows(proxy: Wire, moment: Decision): void {
  let away = false
  proxy.fromClient = data => {
    if (away) return 'cut before'
    away = isCommit(data)
    return away ? moment : 'pass'
  }
}

function isCommit(data: Buffer): boolean {
  return data.includes('commit\0')
}
