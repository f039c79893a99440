import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { operations } from '../http/openapi.ts'
import { engineKinds, sqlite } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { waitUntil } from '../support/wait.ts'
import type { Case } from './cases.ts'
import { fuzzRound, roundSize } from './fuzz.ts'
import { Target } from './target.ts'

const { DUET_FUZZ_SEED, DUET_FUZZ_CASE, DUET_FUZZ_COUNT } = process.env
/** The short form always sends the same requests: a run fails because of a change, not by chance. */
const seed = Number(DUET_FUZZ_SEED ?? inForm(20_261_115, randomInt(2 ** 31)))
const count = Number(DUET_FUZZ_COUNT ?? inForm(300, 100_000))
/** The long form takes ten minutes if other tests run at the same time. */
const timeout = inForm(900_000, 3_600_000)
/** The allowed growth from the first quarter to the end: caches that are still being filled. */
const growthBytes = 16 * 1024 * 1024

for (const kind of inForm([sqlite], engineKinds)) {
  const name = `${count.toLocaleString('en')} mutated requests and conversations on ${kind.name}`
  const options = { skip: kind.skip, timeout }
  test(`${name}: no 5xx, no exit, no internal error or secret in the log, and no memory growth`, options, async t => {
    t.diagnostic(`DUET_FUZZ_SEED=${seed}`)
    await using target = await Target.start(kind)
    const outcomes: { readonly name: string; readonly outcome: string }[] = []
    const send = async (indexes: readonly number[]) => {
      const note = ({ name }: Case, outcome: string) => outcomes.push({ name, outcome })
      const problem = await fuzzRound(target, seed, indexes, note)
      if (problem !== undefined) assert.fail(problem)
    }
    if (DUET_FUZZ_CASE !== undefined) return await send([Number(DUET_FUZZ_CASE)])
    const heaps: number[] = []
    let files = 0
    const rounds = Math.ceil(count / roundSize)
    for (let round = 0; round < rounds; round++) {
      const most = Math.min(roundSize, count - round * roundSize)
      await send(Array.from({ length: most }, (_, at) => round * roundSize + at))
      if (round === 0) files = await target.openFiles()
      if ((round + 1) % Math.ceil(rounds / 4) === 0) heaps.push(await target.heapBytes())
    }
    await target.untilIdle()
    await waitUntil(async () => (await target.openFiles()) <= files + 16)
    const tally = Array.from(
      Map.groupBy(outcomes, ({ outcome }) => outcome),
      ([outcome, all]) => `${all.length} × ${outcome}`,
    )
    t.diagnostic(`outcomes: ${tally.join(', ')}`)
    t.diagnostic(`heap after each quarter: ${heaps.map(bytes => `${(bytes / 1024 / 1024).toFixed(1)} MB`).join(', ')}`)
    const succeeded = outcomes.filter(({ outcome }) => /^(2\d\d|answered)$/.test(outcome))
    assert.ok(succeeded.length > count / 10, `most cases should get beyond the first checks: ${tally}`)
    if (!inForm(false, true)) return
    const names = new Set(succeeded.map(({ name }) => name))
    const never = [...operations.keys()].filter(name => !names.has(name))
    assert.deepEqual(never, ['PUT /password-resets/{secret}']) // which is only in a mail
    const grown = (heaps.at(-1) ?? 0) - (heaps[0] ?? 0)
    assert.ok(grown < growthBytes, `${grown} bytes more are in use after the last quarter than after the first`)
  })
}
