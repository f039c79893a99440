import { clientFrame, opcodes } from '../support/sockets.ts'
import type { Conversation, Step } from './cases.ts'
import { mutateBytes, mutateJson } from './mutate-text.ts'
import type { Random } from './values.ts'

/** Changes up to two messages, or their frames. Some conversations stay valid. */
export function mutateConversation(conversation: Conversation, random: Random): Conversation {
  if (random.chance(0.15)) return conversation
  let steps = conversation.steps
  for (let left = random.pick([1, 1, 2]); left > 0; left--) steps = mutateSteps(steps, random)
  return { ...conversation, steps }
}

function mutateSteps(steps: readonly Step[], random: Random): readonly Step[] {
  const at = random.below(steps.length)
  const step = steps[at] ?? 'reset'
  const put = (...items: readonly Step[]) => [...steps.slice(0, at), ...items, ...steps.slice(at + 1)]
  if (step === 'reset' || !('text' in step)) return put(step, step)
  const json = () => put({ text: mutatedJson(step.text, random) })
  return random.any(
    () => put(...steps.slice(0, random.below(3))), // earlier messages replace it, or it is removed
    () => put(...Array.from({ length: random.pick([2, 2, 3, 110]) }, () => step)),
    () => put({ text: mutateBytes(Buffer.from(step.text), random).toString() }),
    () => put(...(random.chance(0.5) ? [] : [step]), { text: random.pick(nonsense) }),
    () => put(mutateFrames(step.text, random)),
    () => put(step, control(random)),
    () => (random.chance(0.3) ? put(step, 'reset') : put(split(step.text, random))),
    json,
    json,
    json,
  )
}

function mutatedJson(text: string, random: Random): string {
  try {
    return mutateJson(text, random)
  } catch {
    return `${text}x` // an earlier change has made it invalid JSON
  }
}

const nonsense: readonly string[] = [
  ...['', ' ', '[]', 'null', '"ping"', '1', '{}', '{', '\0', 'x'.repeat(262_145), '{"type":null}', '{"type":["ping"]}'],
  ...['{"type":"__proto__"}', '{"type":"next"}', '{"type":"connection_ack"}', '{"__proto__":{"type":"ping"}}'],
  ...['{"type":"start","id":"1","payload":{}}', '{"type":"connection_init","payload":[]}', '{"type":"complete"}'],
  ...['{"type":"ping","payload":"x"}', '{"type":"complete","id":1}', '{"type":"subscribe","id":""}'],
  '{"type":"connection_init","payload":{"Authorization":{"toString":null}}}',
]

/** The same message in fragments, with control frames between them, which is valid. */
function split(text: string, random: Random): Step {
  const bytes = Buffer.from(text)
  const frames: Buffer[] = []
  const pieces = random.between(2, 6)
  for (let piece = 0; piece < pieces; piece++) {
    const part = bytes.subarray((bytes.length * piece) / pieces, (bytes.length * (piece + 1)) / pieces)
    const opcode = piece === 0 ? opcodes.text : opcodes.continuation
    frames.push(masked(clientFrame(part, { opcode, isFinal: piece === pieces - 1 }), random))
    if (random.chance(0.3)) frames.push(clientFrame('beat', { opcode: random.pick([opcodes.ping, opcodes.pong]) }))
  }
  return { frames: Buffer.concat(frames), isSound: true }
}

/** A frame with another meaning, or an invalid one. */
function mutateFrames(text: string, random: Random): Step {
  const frame = clientFrame(text)
  const [first = 0, second = 0] = frame
  const changed = (at: number, byte: number) => ({ frames: Buffer.from(frame.with(at, byte)), isSound: false })
  return random.any<Step>(
    () => changed(0, (first & 0xf0) | random.below(16)), // another opcode
    () => changed(0, first ^ random.pick([0x10, 0x20, 0x40, 0x80])), // reserved bits, or the final bit
    () => changed(1, second & 0x7f), // not masked
    () => changed(1, 0x80 | random.below(128)), // another length
    () => ({ frames: clientFrame(Buffer.from([0xc3, 0x28, 0xed, 0xa0, 0x80])), isSound: true }),
    () => ({ frames: frame.subarray(0, random.below(frame.length)), isSound: false }),
    () => ({ frames: clientFrame(Buffer.alloc(random.pick([262_145, 300_000]), ' ')), isSound: true }),
    () => ({ frames: mutateBytes(frame, random), isSound: false }),
  )
}

/** The server repeats a valid close code, so none of these means a fault of the server. */
const closeCodes = [0, 999, 1000, 1004, 1005, 1006, 1015, 2999, 3000, 4400, 4999, 5000, 65_535]

function control(random: Random): Step {
  const opcode = random.pick([opcodes.ping, opcodes.pong, opcodes.close])
  const code = Buffer.alloc(2)
  code.writeUInt16BE(random.pick(closeCodes))
  const long = Buffer.concat([code, Buffer.alloc(123, 'x')])
  const payload = random.pick([Buffer.alloc(0), Buffer.alloc(1), code, long, Buffer.alloc(126)])
  return { frames: clientFrame(payload, { opcode, isFinal: random.chance(0.9) }), isSound: true }
}

/** Masks a frame with a random key, as clients do. `clientFrame` uses zeros. */
function masked(frame: Buffer, random: Random): Buffer {
  const bytes = Buffer.from(frame)
  const short = bytes.readUInt8(1) & 0x7f
  const keyAt = short < 126 ? 2 : short === 126 ? 4 : 10
  const key = Array.from({ length: 4 }, () => random.below(256))
  for (const [index, byte] of key.entries()) bytes[keyAt + index] = byte
  for (let at = keyAt + 4; at < bytes.length; at++) bytes[at] = (bytes[at] ?? 0) ^ (key[(at - keyAt) % 4] ?? 0)
  return bytes
}
