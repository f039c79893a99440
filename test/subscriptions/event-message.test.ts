import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { EventMessage } from '../../src/graphql/live/event-message.ts'

/** An internal class of `ws` that builds frames. Its types do not include it. */
interface WsParts {
  readonly Sender: {
    frame(data: Buffer, options: { readonly fin: boolean; readonly opcode: number }): readonly Buffer[]
  }
}

const { Sender }: WsParts = createRequire(import.meta.url)('ws')

/** The frame that `ws` sends for an event. */
function frameByWs(id: string, data: string): Buffer {
  const text = `{"id":${JSON.stringify(id)},"type":"next","payload":{"data":${data}}}`
  return Buffer.concat(Sender.frame(Buffer.from(text), { fin: true, opcode: 1 }))
}

// The length of a frame needs one, two or eight bytes more, with limits at 126 and 65,536 bytes.
test('the message of an event becomes the frames that ws makes, which count bytes and differ only in the id', () => {
  const shortest = frameByWs('1', '""').length - 2
  const lengths = [shortest, 125, 126, 127, 32_768, 65_535, 65_536, 65_537]
  const ascii = lengths.map(length => 'x'.repeat(length - shortest))
  const others = [1, 30, 50, 32_740, 32_750, 32_760, 40_000].map(size => 'é'.repeat(size))
  for (const text of [...ascii, ...others]) {
    const data = JSON.stringify(text)
    const message = new EventMessage(data)
    for (const id of ['1', '1', 'another id', '"\\é🎈', '1']) {
      const [frame, expected] = [message.frame(JSON.stringify(id)), frameByWs(id, data)]
      const what = `${text.length} × ${text[0]} to ${id}`
      // Not `deepEqual`, which would print two frames of 64 KiB byte by byte.
      assert.equal(frame.subarray(0, 14).toString('hex'), expected.subarray(0, 14).toString('hex'), what)
      assert.ok(frame.equals(expected), what)
    }
  }
})
