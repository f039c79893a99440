import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { placeFromText } from '../../src/core/events.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { createMember } from '../support/rest.ts'
import { type Operation, SocketClient } from '../support/sockets.ts'
import { idsIn, newPost } from './posts.ts'

const posts = 'subscription { postAdded { id } }'

/** A socket that has asked for the position at its start. */
async function connectWithPosition(app: { readonly url: string }) {
  const client = await SocketClient.open(app)
  await client.initialise({ positions: true })
  const [message] = client.messages
  const { position } = (message?.payload ?? {}) as { position?: string }
  assert.deepEqual(message, { type: 'connection_ack', payload: { position } })
  return { client, position: position ?? assert.fail('no position') }
}

for (const kind of engineKinds) {
  describe(`The position in an acknowledgement, on ${kind.name}`, { skip: kind.skip }, () => {
    it('is there only if the client asks, before everything that is committed later, while many write and sockets are cut', async () => {
      await using app = await startTestAppOn(kind, { RATE_LIMIT_MAX: '0' })
      for (const payload of [undefined, null, {}, { positions: false }, { positions: 'true' }]) {
        using client = await SocketClient.open(app)
        await client.initialise(payload)
        assert.deepEqual(client.messages, [{ type: 'connection_ack' }])
      }
      const { token } = await createMember(app)
      let isOver = false
      const writers = Array.from({ length: 4 }, async () => {
        using writer = await SocketClient.connect(app, { token })
        while (!isOver) await newPost(writer)
      })
      using all = await SocketClient.connect(app)
      const whole = all.begin(posts, undefined, { extensions: { positions: true } })
      await whole.received(1)
      using writer = await SocketClient.connect(app, { token })
      const resumed: { client: SocketClient; operation: Operation; position: string; before: number; own: string }[] =
        []
      for (let n = 0; n < inForm(10, 60); n++) {
        const before = whole.events.length
        const { client: cut, position } = await connectWithPosition(app)
        cut.begin(posts)
        cut[Symbol.dispose]()
        const own = await newPost(writer)
        const client = await SocketClient.connect(app)
        // Some begin at the same position as others.
        for (let times = n % 3; times >= 0; times--)
          resumed.push({
            client,
            position,
            before,
            own,
            operation: client.begin(posts, undefined, { extensions: { after: position } }),
          })
        await resumed.at(-1)?.operation.received(1)
      }
      isOver = true
      await Promise.all(writers)
      const last = await newPost(writer)
      await whole.until(() => idsIn(whole).includes(last))
      for (const { operation, position, before, own } of resumed) {
        const from = placeFromText(position)?.position ?? assert.fail()
        const expected = idsIn(whole).filter((_, index) => positionOf(whole, index) > from)
        await operation.until(() => operation.events.length >= expected.length)
        assert.deepEqual(idsIn(operation), expected)
        // What the other client had received was committed before the socket was opened.
        assert.ok(from >= positionOf(whole, before - 1))
        assert.ok(expected.includes(own), 'a post that was created after the acknowledgement')
      }
      for (const { client } of resumed) client[Symbol.dispose]()
    })
  })
}

function positionOf({ positions }: Operation, index: number): number {
  return placeFromText(positions[index])?.position ?? assert.fail()
}
