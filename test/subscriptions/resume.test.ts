import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { placeFromText, placeToText } from '../../src/core/events.ts'
import { execute } from '../faults/execute.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds, sqlite } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { createMember, type Member } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { metricOf, type Operation, SocketClient } from '../support/sockets.ts'
import { idsIn, newPost } from './posts.ts'

const posts = 'subscription { postAdded { id } }'
const comments = 'subscription ($postId: ID!) { commentAdded(postId: $postId) { id } }'

for (const kind of engineKinds) {
  describe(`A subscription with positions on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind, { RATE_LIMIT_MAX: '0' }))
    let member: Member
    let writer: SocketClient
    before(async () => {
      member = await createMember(app)
      writer = await SocketClient.connect(app, member)
    })
    after(() => writer[Symbol.dispose]())

    /** The position before the events that the test creates. A client that has none yet may send null. */
    async function start(): Promise<string> {
      using client = await SocketClient.connect(app)
      const operation = client.begin(posts, undefined, { extensions: { positions: true, after: null } })
      await operation.listening(() => newPost(writer))
      return operation.positions.at(-1) ?? assert.fail()
    }

    it('ends if its post was deleted after the position, and is refused if it did not exist there', async () => {
      const remove = (id: string) => writer.read('mutation ($id: ID!) { deletePost(id: $id) }', { id })
      const [deleted, post] = [await newPost(writer), await newPost(writer)]
      await remove(deleted)
      const position = await start()
      await writer.read(`mutation { addComment(postId: ${post}, text: "x") { id } }`)
      await remove(post)
      using client = await SocketClient.connect(app)
      for (const [postId, code] of [
        [post, undefined],
        ['123456789', 'NOT_FOUND'],
        [deleted, 'NOT_FOUND'],
      ] as const) {
        const operation = client.begin(comments, { postId }, { extensions: { after: position } })
        await operation.over()
        assert.deepEqual([operation.events, operation.errors?.[0]?.extensions.code], [[], code])
      }
    })

    it('is refused with POSITION_UNKNOWN at a position that is not ours, malformed or no longer kept', async () => {
      const position = await start()
      const place = placeFromText(position) ?? assert.fail()
      const unknown = [
        placeToText({ ...place, position: place.position + 1000 }),
        placeToText({ ...place, at: place.at + 1 }),
        placeToText({ ...place, at: 9e15 }),
        ...[`${position}x`, 'x'.repeat(100_000), '', 5, { position }],
      ]
      using client = await SocketClient.connect(app)
      const codeFor = async (after: unknown) => {
        const operation = client.begin(posts, undefined, { extensions: { after } })
        await assert.rejects(operation.listening(() => newPost(writer))) // because it is over
        return operation.errors?.[0]?.extensions.code
      }
      for (const after of unknown) assert.equal(await codeFor(after), 'POSITION_UNKNOWN', JSON.stringify(after))
      await start() // the latest event keeps its time: the feed would take another one for a lost log
      const old = new Date(place.at - 3_601_000).toISOString()
      await execute(app.database, `update outbox set created_at = '${old}' where id < (select max(id) from outbox)`)
      assert.equal(await codeFor(placeToText({ ...place, at: place.at - 3_601_000 })), 'POSITION_UNKNOWN')
      assert.equal(await codeFor(placeToText({ ...place, at: place.at - 3_600_999 })), 'POSITION_UNKNOWN')
    })

    it('has a position in its acknowledgement only if the client asks, before everything that is committed later, while many write and sockets are cut', async () => {
      for (const payload of [undefined, null, {}, { positions: false }, { positions: 'true' }]) {
        using client = await SocketClient.open(app)
        await client.initialise(payload)
        assert.deepEqual(client.messages, [{ type: 'connection_ack' }])
      }
      let isOver = false
      const writers = Array.from({ length: 4 }, async () => {
        using busy = await SocketClient.connect(app, member)
        while (!isOver) await newPost(busy)
      })
      using all = await SocketClient.connect(app)
      const whole = all.begin(posts, undefined, { extensions: { positions: true } })
      await whole.received(1)
      const resumed: { client: SocketClient; operation: Operation; position: string; before: number; own: string }[] =
        []
      for (let n = 0; n < inForm(10, 60); n++) {
        const before = whole.events.length
        const cut = await SocketClient.open(app)
        await cut.initialise({ positions: true })
        const { position = assert.fail() }: { position?: string } = Object(cut.messages[0]?.payload)
        assert.deepEqual(cut.messages, [{ type: 'connection_ack', payload: { position } }])
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

    // On both engines, the log returns its events in portions: see events/log.test.ts.
    if (kind === sqlite)
      it('gets far more events than one read of the log returns, even if its client reads them slowly', async () => {
        const position = await start()
        const content = 'x'.repeat(10_000)
        const mutation = `mutation ($text: String!) { ${Array.from({ length: 50 }, (_, n) => `p${n}: createPost(title: "T", content: $text) { id }`)} }`
        const missed: string[] = []
        for (let n = 0; n < 12; n++) {
          const answer = await writer.read<Record<string, { id: string }>>(mutation, { text: content })
          missed.push(...Object.values(answer).map(({ id }) => id))
        }
        using client = await SocketClient.connect(app)
        const operation = client.begin('subscription { postAdded { id content } }', undefined, {
          extensions: { after: position },
        })
        await operation.received(1)
        client.websocket.pause()
        // The service stops sending while the client does not read, so it does not treat the client as a slow consumer.
        const replayed = () => metricOf(app, 'duet_events_replayed_total')
        let [before, now] = [-1, await replayed()]
        while (now !== before) [before, now] = [now, await settled(replayed)]
        client.websocket.resume()
        await operation.received(missed.length)
        assert.deepEqual(idsIn(operation), missed)
      })
  })
}

async function settled(read: () => Promise<number>): Promise<number> {
  for (let n = 0; n < 50; n++) await turn()
  return read()
}

const positionOf = ({ positions }: Operation, index: number): number =>
  placeFromText(positions[index])?.position ?? assert.fail()
