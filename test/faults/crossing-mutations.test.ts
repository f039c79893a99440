import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { postgres } from '../support/engines.ts'
import { inForm, onlyInFull } from '../support/form.ts'
import { read } from '../support/graphql.ts'
import { assertSound, History, summarise } from '../support/history.ts'
import { createMember } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'
import { Instance } from './instance.ts'
import { judgeOn } from './judgement.ts'
import { attempt, runWorkers } from './payers.ts'

const crossing = 64
const payers = 8

describe('64 mutations at once that name two posts in opposite orders, on PostgreSQL', { skip: postgres.skip }, () => {
  it('all succeed, and concurrent payments keep their speed', { skip: onlyInFull }, async t => {
    await using database = await postgres.create()
    await using instance = await Instance.start(database)
    const { token } = await createMember(instance)
    const { a, b } = await read<Posts>(instance, create, { token })
    using socket = await SocketClient.connect(instance, { token })
    const like = async (first: string, second: string) => {
      const { errors } = await socket.ask(
        `mutation { a: likePost(id: ${first}) { id } b: likePost(id: ${second}) { id } }`,
      )
      return errors === undefined ? 'done' : JSON.stringify(errors)
    }
    let slowest = 0
    const outcomes = new Map<string, number>()
    let going = true
    const cross = () =>
      runWorkers(crossing, async worker => {
        while (going) {
          const begun = performance.now()
          const outcome = await (worker % 2 === 0 ? like(a.id, b.id) : like(b.id, a.id))
          slowest = Math.max(slowest, performance.now() - begun)
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
        }
      })

    const history = new History()
    const [alone, beside]: [number[], number[]] = [[], []]
    await paymentsPerSecond(history, instance, inForm(2, 50)) // warm-up
    for (let round = 0; round < inForm(1, 5); round++) {
      alone.push(await paymentsPerSecond(history, instance, inForm(5, 50)))
      going = true
      const mutations = cross()
      beside.push(await paymentsPerSecond(history, instance, inForm(5, 50)))
      going = false
      await mutations
    }
    const share = median(beside) / median(alone)
    t.diagnostic(
      `${outcomes.get('done')} mutations, the slowest took ${Math.round(slowest)} ms; payments per second: ${Math.round(median(alone))} alone, ` +
        `${Math.round(median(beside))} beside them (${Math.round(share * 100)} %)`,
    )
    assert.deepEqual([...outcomes.keys()], ['done'])
    const verdict = await judgeOn(database, history)
    t.diagnostic(summarise(verdict))
    assert.equal(verdict.unavailable, 0)
    assertSound(verdict)
    assert.deepEqual(instance.faults, [])
    if (inForm(false, true)) assert.ok(share >= 0.8, `${share}`) // only on an idle machine
  })
})

interface Posts {
  readonly a: { readonly id: string }
  readonly b: { readonly id: string }
}

const create =
  'mutation { a: createPost(title: "a", content: "a") { id } b: createPost(title: "b", content: "b") { id } }'

/** Each payer pays every 80 ms, or later if it still waits for an answer. */
async function paymentsPerSecond(history: History, { url }: Instance, each: number): Promise<number> {
  const begun = performance.now()
  await runWorkers(payers, async () => {
    for (let paid = 0; paid < each; paid++) {
      await delay(Math.max(0, begun + paid * 80 - performance.now()))
      await attempt(history, url, history.intend())
    }
  })
  return (payers * each * 1000) / (performance.now() - begun)
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1] ?? Number.NaN
}
