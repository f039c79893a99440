import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Environment } from '../../src/config.ts'
import { startTestAppOn } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { postgres, sqlite } from '../support/engines.ts'
import { ask } from '../support/http.ts'
import { setDatabaseClockAhead } from './database-clock.ts'

type Answers = readonly (readonly [status: number, id: number])[]

/** Sets the clock that decides to this many seconds after the first payment. */
type Jump = (seconds: number) => unknown

describe('F8: a clock that jumps', () => {
  it('R-LIM-14: on SQLite a key expires after 86,400 seconds, and a jump back does not replay an older payment', async () => {
    assertKept(await jumpOnSqlite({}))
  })

  it('on SQLite this test fails if keys last a few seconds more or less', async () => {
    for (const seconds of [86_399, 86_402]) {
      const answers = await jumpOnSqlite({ IDEMPOTENCY_TTL_SECONDS: String(seconds) })
      assert.throws(() => assertKept(answers), assert.AssertionError, `${seconds} seconds`)
    }
  })

  it("on PostgreSQL a jump of the server's clock changes nothing", { skip: postgres.skip }, async () => {
    const clock = new TestClock(Date.now())
    await using app = await startTestAppOn(postgres, {}, { clock })
    const ids = new Set<number>()
    const statuses: number[] = []
    for (const seconds of [0, 86_399, 2, 10 * 86_400, -20 * 86_400]) {
      clock.pass(seconds * 1000)
      const [status, id] = await payOnce(app.url)
      statuses.push(status)
      ids.add(id)
    }
    assert.deepEqual(statuses, [201, 200, 200, 200, 200])
    assert.equal(ids.size, 1)
  })

  it("R-LIM-14: on PostgreSQL a key expires after 86,400 seconds of the database's clock", {
    skip: postgres.skip,
  }, async () => {
    assertKept(await jumpOnPostgres({}))
  })

  it('on PostgreSQL this test fails if keys last a minute more or less', { skip: postgres.skip }, async () => {
    for (const seconds of [86_340, 86_460]) {
      const answers = await jumpOnPostgres({ IDEMPOTENCY_TTL_SECONDS: String(seconds) })
      assert.throws(() => assertKept(answers), assert.AssertionError, `${seconds} seconds`)
    }
  })
})

async function jumpOnSqlite(env: Environment): Promise<Answers> {
  const start = Date.now()
  const clock = new TestClock(start)
  await using app = await startTestAppOn(sqlite, env, { clock })
  return await payThroughJumps(app.url, seconds => clock.pass(start + seconds * 1000 - clock.now()), 86_399, 86_401)
}

/** The database's clock continues to run. So the jumps keep a distance from the exact second, for slow machines. */
async function jumpOnPostgres(env: Environment): Promise<Answers> {
  await using app = await startTestAppOn(postgres, env)
  return await payThroughJumps(app.url, seconds => setDatabaseClockAhead(app.database, seconds), 86_370, 86_401)
}

async function payThroughJumps(url: string, jump: Jump, shortly: number, over: number): Promise<Answers> {
  const answers: (readonly [number, number])[] = []
  for (const seconds of [0, -3_600, 0, shortly, over, over, over - 3_600, over + shortly, over + over]) {
    await jump(seconds)
    answers.push(await payOnce(url))
  }
  return answers
}

function assertKept(answers: Answers): void {
  assert.deepEqual(
    answers.map(([status]) => status),
    [201, 200, 200, 200, 201, 200, 200, 200, 201],
  )
  const [first, second, third] = [answers[0]?.[1], answers[4]?.[1], answers[8]?.[1]]
  assert.deepEqual(
    answers.map(([, id]) => id),
    [first, first, first, first, second, second, second, second, third],
  )
  assert.equal(new Set([first, second, third]).size, 3)
}

async function payOnce(url: string): Promise<readonly [status: number, id: number]> {
  const { status, body } = await ask(`${url}/payments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'the-one-key' },
    body: JSON.stringify({ amount: 12.34 }),
  })
  return [status, JSON.parse(body).id]
}
