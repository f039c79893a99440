import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idsIn, newPost } from '../subscriptions/posts.ts'
import { programMissing } from '../support/daemon.ts'
import { postgres, postgresAt } from '../support/engines.ts'
import { inForm, onlyInFull } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { PostgresServer } from '../support/postgres.ts'
import { createMember } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'
import { generous, waitUntil } from '../support/wait.ts'
import { assertSound, History, judgeOn, summarise } from './history.ts'
import { Instance } from './instance.ts'
import { resolveUnknowns, startPaying } from './payers.ts'
import { isPrimary, startDatabaseProxy } from './proxies.ts'
import { Wire } from './wire.ts'

const skip = postgres.skip || (programMissing('haproxy') ?? false)

test('a primary of PostgreSQL that is killed under 16 payers, and whose synchronous standby takes over, loses nothing acknowledged and pays nothing twice', {
  skip,
}, async t => {
  for (let round = 0; round < inForm(1, 5); round++) {
    await using parts = new AsyncDisposableStack()
    const { primary, standby, instance } = await startReplicated('synchronous', parts)
    const history = new History()
    let readyMs: number
    {
      await using _paying = startPaying(history, instance.url)
      await history.more(inForm(50, 1000))
      await primary.kill()
      await standby.promote()
      const promoted = performance.now()
      await waitUntil(async () => (await ask(`${instance.url}/health/ready`)).status === 200)
      readyMs = performance.now() - promoted
      await history.more(inForm(50, 100))
    }
    await resolveUnknowns(history, instance.url)
    const verdict = await judgeOn(postgresAt(standby.url), history)
    t.diagnostic(`${summarise(verdict)}; ready ${Math.round(readyMs)} ms after the promotion`)
    assertSound(verdict)
    assert.deepEqual(instance.faults, [])
    if (inForm(false, true)) assert.ok(readyMs <= 10_000, `ready after ${readyMs} ms`) // only on an idle machine
  }
})

test('a standby that was behind its primary and takes over makes the service close its sockets with 1012, and subscribers that come back get every event', {
  skip: skip || onlyInFull,
}, async () => {
  await using parts = new AsyncDisposableStack()
  const { primary, standby, instance } = await startReplicated('lagging', parts)
  const subscribe = async () => {
    const { token } = await createMember(instance)
    const socket = parts.use(await SocketClient.connect(instance, { token }))
    const post = (title: string) => newPost(socket, title)
    const subscription = await socket.begin('subscription { postAdded { id } }').listening(post)
    return { socket, subscription, post }
  }
  const { socket, subscription, post } = await subscribe()
  for (let n = 0; n < 50; n++) await post('will be lost')
  await subscription.received(50)
  await primary.kill()
  await standby.promote()
  assert.equal((await socket.closed).code, 1012)
  const later = await subscribe()
  const ids = [await later.post('one'), await later.post('two')]
  await later.subscription.received(2)
  assert.deepEqual(idsIn(later.subscription), ids)
})

/** A primary and its standby, a proxy to the server that accepts writes, and an instance of the service. */
async function startReplicated(replication: 'synchronous' | 'lagging', parts: AsyncDisposableStack) {
  const settings = { synchronous_standby_names: replication === 'synchronous' ? 'second' : '' }
  const primary = parts.use(await PostgresServer.start(settings))
  const wire = parts.use(await Wire.to(new URL(primary.url)))
  const standby = parts.use(await PostgresServer.startStandby(primary, 'second', String(wire.port)))
  const proxy = await startDatabaseProxy([new URL(primary.url), new URL(standby.url)], parts)
  const address = new URL(primary.url)
  address.port = String(proxy.port)
  await waitUntil(() => isPrimary(address.href)) // the proxy has found the primary
  const env = inForm<Readonly<Record<string, string>>>(generous, { ...generous, DATABASE_TIMEOUT_MS: '1200' })
  const instance = parts.use(await Instance.start(postgresAt(address.href), env))
  if (replication === 'lagging') wire.fromServer = () => 'keep' // from now on no data reaches the standby
  return { primary, standby, instance }
}
