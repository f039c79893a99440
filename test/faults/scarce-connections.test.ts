import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { postgres, postgresAt } from '../support/engines.ts'
import { inForm, onlyInFull } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { createMember } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'
import { execute } from './execute.ts'
import { assertSound, History, summarise } from './history.ts'
import { Instance } from './instance.ts'
import { judgeOn } from './judgement.ts'
import { attempt, runWorkers } from './payers.ts'

describe('A role that may have 6 connections, and a pool that wants 10', { skip: postgres.skip }, () => {
  it('serves concurrent payments, reads and subscriptions without refusing a request', {
    skip: onlyInFull,
  }, async t => {
    await using database = await postgres.createEmpty()
    const address = new URL(database.location)
    address.username = `scarce_${process.pid}`
    await execute(database, `create role ${address.username} login connection limit 6`)
    await execute(database, `alter database ${address.pathname.slice(1)} owner to ${address.username}`)
    const env = inForm<Readonly<Record<string, string>>>({}, { DATABASE_TIMEOUT_MS: '1200' })
    await using instance = await Instance.start(postgresAt(address.href), { ...env, DATABASE_POOL_MAX: '10' })
    const { token } = await createMember(instance)
    using socket = await SocketClient.connect(instance, { token })
    const subscription = await socket.begin('subscription { postAdded { id title } }').listening(async title => {
      const text = 'mutation ($title: String!) { createPost(title: $title, content: $title) { id } }'
      return (await socket.read<{ createPost: { id: string } }>(text, { title })).createPost.id
    })

    const history = new History()
    const reads = new Map<number, number>()
    const payments = inForm(200, 3000)
    await runWorkers(32, async worker => {
      while (history.acknowledged < payments) {
        if (worker % 2 === 0) await attempt(history, instance.url, history.intend())
        const { status } = await ask(`${instance.url}/users`)
        reads.set(status, (reads.get(status) ?? 0) + 1)
      }
    })
    assert.ok(!subscription.isOver)
    const verdict = await judgeOn(database, history)
    t.diagnostic(`${summarise(verdict)}; ${reads.get(200)} reads`)
    assert.deepEqual([...reads.keys()], [200])
    assert.equal(verdict.unavailable, 0)
    assertSound(verdict)
    assert.deepEqual(instance.faults, [])
  })
})
