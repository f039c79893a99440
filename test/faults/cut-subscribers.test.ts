import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { engineKinds, type TestDatabase } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { read } from '../support/graphql.ts'
import { tokenKeys } from '../support/keys.ts'
import { createMember } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'

const posts = inForm(120, 10_000)
const cuts = inForm(6, 200)

/** Instances on one database. One of them is replaced from time to time. On SQLite there is only one. */
async function startInstances({ kind, location }: TestDatabase, parts: AsyncDisposableStack) {
  const env = {
    DATABASE_URL: kind === 'sqlite' ? `sqlite:${location}` : location,
    TOKEN_KEYS: tokenKeys,
    RATE_LIMIT_MAX: '0',
    DATABASE_POOL_MAX: '4',
  }
  const running = [await startTestApp(env)]
  if (kind === 'postgres') running.push(await startTestApp(env))
  parts.defer(async () => {
    for (const app of running) await app[Symbol.asyncDispose]()
  })
  return {
    any: () => running[Math.floor(Math.random() * running.length)] ?? assert.fail('No instance is running'),
    /** Stops the oldest instance and starts a new one. */
    async replaceOne() {
      await running.shift()?.[Symbol.asyncDispose]()
      running.push(await startTestApp(env))
    },
  }
}

for (const kind of engineKinds) {
  test(`A subscriber that is cut off ${cuts} times, on ${kind.name}, gets every post once and in order when it resumes, over instances that are restarted in turn`, {
    skip: kind.skip,
  }, async () => {
    await using parts = new AsyncDisposableStack()
    const instances = await startInstances(parts.use(await kind.create()), parts)
    const { token } = await createMember(instances.any())
    const written: string[] = []
    const write = async (count: number) => {
      const fields = Array.from({ length: count }, (_, n) => `p${n}: createPost(title: "T", content: "C") { id }`)
      const created = await read<Record<string, { id: string }>>(instances.any(), `mutation { ${fields} }`, { token })
      written.push(...Object.values(created).map(({ id }) => id))
    }
    const received: string[] = []
    let position: string | undefined
    const connect = async () => {
      const client = await SocketClient.connect(instances.any())
      const extensions = position !== undefined ? { after: position } : { positions: true }
      return { client, operation: client.begin('subscription { postAdded { id } }', undefined, { extensions }) }
    }
    let { client, operation } = await connect()
    /** Notes the received events and cuts the connection without a close frame. */
    const cut = () => {
      client[Symbol.dispose]()
      assert.equal(operation.errors, undefined)
      received.push(...operation.events.map(event => (event as { postAdded: { id: string } }).postAdded.id))
      position = operation.positions.at(-1) ?? position
    }
    await operation.listening(async () => {
      await write(1)
      return written.at(-1) ?? ''
    })
    written.length = 0
    for (let n = 0; n < cuts; n++) {
      const writing = write(posts / cuts)
      if (n % 2 === 0) await writing
      cut()
      if (n % 3 === 0) {
        await writing // during a restart the answer may be 503
        await instances.replaceOne()
      }
      ;({ client, operation } = await connect())
      await writing
    }
    await operation.received(posts - received.length)
    cut()
    assert.deepEqual(received, written)
  })
}
