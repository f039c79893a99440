import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { postgres } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { read } from '../support/graphql.ts'
import { assertSound, History, tell } from '../support/history.ts'
import { createMember } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'
import { Instance } from './instance.ts'
import { judgeOn } from './judgement.ts'
import { attempt, hands } from './payers.ts'

const crossing = 64
const payers = 16

describe('64 mutations at once that name two posts in opposite orders, on PostgreSQL', { skip: postgres.skip }, () => {
  it('all succeed, round after round, and payments beside them keep their pace', async t => {
    await using database = await postgres.create()
    // As operators run it: a mutation that had to wait too long would be refused.
    await using instance = await Instance.start(database, { DATABASE_TIMEOUT_MS: inForm('120000', '1200') })
    const { token } = await createMember(instance)
    const { a, b } = await read<Posts>(instance, create, { token })
    using socket = await SocketClient.connect(instance, { token })
    const like = async (first: string, second: string) => {
      const { errors } = await socket.ask(
        `mutation { a: likePost(id: ${first}) { id } b: likePost(id: ${second}) { id } }`,
      )
      return errors === undefined ? 'done' : JSON.stringify(errors)
    }
    const outcomes = new Map<string, number>()
    let going = true
    const cross = () =>
      hands(crossing, async hand => {
        while (going) {
          const outcome = await (hand % 2 === 0 ? like(a.id, b.id) : like(b.id, a.id))
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
        }
      })

    const history = new History()
    const [alone, beside]: [number[], number[]] = [[], []]
    await paymentsPerSecond(history, instance, inForm(20, 500)) // warm
    for (let round = 0; round < inForm(1, 3); round++) {
      alone.push(await paymentsPerSecond(history, instance, inForm(50, 1000)))
      going = true
      const mutations = cross()
      beside.push(await paymentsPerSecond(history, instance, inForm(50, 1000)))
      going = false
      await mutations
    }
    const share = median(beside) / median(alone)
    t.diagnostic(
      `${outcomes.get('done')} mutations; payments per second: ${Math.round(median(alone))} alone, ` +
        `${Math.round(median(beside))} beside them (${Math.round(share * 100)} %)`,
    )
    assert.deepEqual([...outcomes.keys()], ['done'])
    const verdict = await judgeOn(database, history)
    t.diagnostic(tell(verdict))
    assert.equal(verdict.unavailable, 0)
    assertSound(verdict)
    assert.deepEqual(instance.faults, [])
  })
})

interface Posts {
  readonly a: { readonly id: string }
  readonly b: { readonly id: string }
}

const create =
  'mutation { a: createPost(title: "a", content: "a") { id } b: createPost(title: "b", content: "b") { id } }'

async function paymentsPerSecond(history: History, { url }: Instance, count: number): Promise<number> {
  const begun = performance.now()
  let left = count
  await hands(payers, async () => {
    while (left-- > 0) await attempt(history, url, history.intend())
  })
  return (count * 1000) / (performance.now() - begun)
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1] ?? Number.NaN
}
