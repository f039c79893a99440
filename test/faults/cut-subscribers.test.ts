import assert from 'node:assert/strict'
import { test } from 'node:test'
import { engineKinds } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { read } from '../support/graphql.ts'
import { createMember } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'
import { startServer } from './instance.ts'

const posts = inForm(120, 10_000)
const cuts = inForm(6, 200)

for (const kind of engineKinds) {
  test(`A subscriber that is cut off ${cuts} times, on ${kind.name}, gets every post once and in order when it resumes, over instances that are restarted in turn`, {
    skip: kind.skip,
  }, async () => {
    await using parts = new AsyncDisposableStack()
    const database = parts.use(await kind.create())
    const start = () => startServer(database, { DATABASE_POOL_MAX: '4' })
    // On SQLite there is only one.
    const running = kind.kind === 'sqlite' ? [await start()] : [await start(), await start()]
    parts.defer(() => Promise.all(running.map(instance => instance[Symbol.asyncDispose]())).then(() => {}))
    const any = () => running[Math.floor(Math.random() * running.length)] ?? assert.fail('No instance is running')
    const { token } = await createMember(any())
    const written: string[] = []
    const write = async (count: number) => {
      const fields = Array.from({ length: count }, (_, n) => `p${n}: createPost(title: "T", content: "C") { id }`)
      const created = await read<Record<string, { id: string }>>(any(), `mutation { ${fields} }`, { token })
      written.push(...Object.values(created).map(({ id }) => id))
    }
    const received: string[] = []
    let position: string | undefined
    const connect = async () => {
      const client = await SocketClient.connect(any())
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
        await running.shift()?.stop()
        running.push(await start())
      }
      ;({ client, operation } = await connect())
      await writing
    }
    await operation.received(posts - received.length)
    cut()
    assert.deepEqual(received, written)
  })
}
