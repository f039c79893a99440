import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import type { Writable } from 'node:stream'
import { describe, it } from 'node:test'
import { EventMessage } from '../../src/graphql/live/event-message.ts'

/** Internal classes of `ws` that build and parse frames. Its types do not include them. */
interface WsParts {
  readonly Sender: {
    frame(data: Buffer, options: { readonly fin: boolean; readonly opcode: number }): readonly Buffer[]
  }
  readonly Receiver: new () => Writable
}

const { Sender, Receiver }: WsParts = createRequire(import.meta.url)('ws')

function textOf(id: string, data: string): string {
  return `{"id":${JSON.stringify(id)},"type":"next","payload":{"data":${data}}}`
}

/** The frame that `ws` sends for a text. */
function frameByWs(text: string): Buffer {
  return Buffer.concat(Sender.frame(Buffer.from(text), { fin: true, opcode: 1 }))
}

/** The texts that `ws` reads out of a frame, as a client does. */
function readByWs(frame: Buffer): readonly string[] {
  const texts: string[] = []
  const receiver = new Receiver()
  receiver.on('message', data => texts.push(String(data)))
  receiver.write(frame)
  return texts
}

/** Does not use `deepEqual`, which would print two frames of 64 KiB byte by byte. */
function assertSameBytes(actual: Buffer, expected: Buffer, what: string): void {
  assert.equal(actual.subarray(0, 14).toString('hex'), expected.subarray(0, 14).toString('hex'), `${what}: its start`)
  assert.equal(actual.length, expected.length, `${what}: its length`)
  assert.ok(actual.equals(expected), `${what}: its content`)
}

describe('EventMessage', () => {
  const shortest = textOf('1', '""').length

  /** Data that makes the whole message this many bytes long. */
  const dataFor = (bytes: number) => JSON.stringify('x'.repeat(bytes - shortest))

  // The length of a frame needs one, two or eight bytes more, with limits at 126 and 65,536 bytes.
  it('of any length becomes the frame that ws makes and reads', () => {
    for (const length of [shortest, 125, 126, 127, 32_768, 65_535, 65_536, 65_537]) {
      const data = dataFor(length)
      const text = textOf('1', data)
      assert.equal(Buffer.byteLength(text), length)
      const frame = new EventMessage(data).frame('"1"')
      assertSameBytes(frame, frameByWs(text), `the frame of ${length} bytes`)
      assert.ok(readByWs(frame).join() === text, `ws reads the frame of ${length} bytes`)
    }
  })

  it('lengths are counted in bytes, and frames of one message differ only in the id', () => {
    for (const size of [0, 1, 30, 50, 32_740, 32_750, 32_760, 40_000]) {
      const data = JSON.stringify({ x: 'é'.repeat(size) })
      const message = new EventMessage(data)
      for (const id of ['1', '1', 'another id', '"\\é🎈', '1']) {
        const text = textOf(id, data)
        assertSameBytes(message.frame(JSON.stringify(id)), frameByWs(text), `${size} × é to ${id}`)
      }
    }
  })
})
