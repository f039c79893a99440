import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Unread } from '../../src/http/unread.ts'
import { waitUntil } from '../support/wait.ts'
import { FanOutStage } from './fakes.ts'
import { StuckStream, serveSockets } from './served-sockets.ts'

const mebibyte = 1024 * 1024
const subscribe = { type: 'subscribe', id: '1', payload: { query: '{ post(id: 1) { id } }' } }

describe('A client that does not read an answer', () => {
  it('is disconnected while all clients together leave too much unread, and one that reads is not', async () => {
    const stage = new FanOutStage()
    stage.store.answer = () => `{"post":{"id":"${'x'.repeat(mebibyte)}"}}`
    let closings = 0
    const unread = new Unread(3 * mebibyte)
    await using server = await serveSockets(stage, {
      unread,
      observer: { closedForSlowness: () => closings++, ended() {} },
    })
    const open = async () => {
      const stream = new StuckStream()
      server.accept(stream)
      stream.hear({ type: 'connection_init' })
      await turn()
      return stream
    }
    const reading = await open()
    await reading.drain()
    const stuck: StuckStream[] = []
    for (let n = 0; n < 3; n++) {
      const stream = await open()
      stuck.push(stream)
      stream.hear(subscribe)
      await waitUntil(() => stream.writableLength > mebibyte || stream.destroyed)
    }
    assert.deepEqual([...stuck.map(({ destroyed }) => destroyed), closings], [false, false, true, 1])
    server.sockets.beat()
    await turn()
    assert.ok(unread.bytes > 2 * mebibyte && unread.bytes < 3 * mebibyte, `${unread.bytes} bytes`)
    assert.equal(reading.destroyed, false)
    for (const stream of [reading, ...stuck]) stream.destroy()
    await waitUntil(() => unread.bytes === 0)
  })
})

describe('A client that reads late', () => {
  it('is served again each time that it has read an answer of more than 1 MiB, whatever its characters', async () => {
    const stage = new FanOutStage()
    stage.store.answer = () => `{"post":{"id":"${'€'.repeat(mebibyte / 2)}"}}`
    let closings = 0
    await using server = await serveSockets(stage, { observer: { closedForSlowness: () => closings++, ended() {} } })
    const stream = new StuckStream()
    server.accept(stream)
    stream.hear({ type: 'connection_init' })
    await turn()
    for (let times = 0; times < 2; times++) {
      stream.hear(subscribe)
      await waitUntil(() => stream.writableLength > 1.5 * mebibyte)
      await stream.drain()
      assert.equal(closings, 0)
    }
    stream.destroy()
  })
})
