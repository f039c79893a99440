import { clientFrame, opcodes } from '../support/sockets.ts'
import type { Conversation, Step } from './cases.ts'
import { mutateBytes } from './mutate-bytes.ts'
import { mutateJson } from './mutate-json.ts'
import type { Random } from './random.ts'

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
  switch (random.below(10)) {
    case 0:
      return put(...steps.slice(0, random.below(3))) // earlier messages replace it, or it is removed
    case 1:
      return put(...Array.from({ length: random.pick([2, 2, 3, 110]) }, () => step))
    case 2:
      return put({ text: mutateBytes(Buffer.from(step.text), random).toString() })
    case 3:
      return random.chance(0.5) ? put({ text: random.pick(nonsense) }) : put(step, { text: random.pick(nonsense) })
    case 4:
      return put(mutateFrames(step.text, random))
    case 5:
      return put(step, control(random))
    case 6:
      return random.chance(0.3) ? put(step, 'reset') : put(split(step.text, random))
    default:
      return put({ text: mutatedJson(step.text, random) })
  }
}

function mutatedJson(text: string, random: Random): string {
  try {
    return mutateJson(text, random)
  } catch {
    return `${text}x` // an earlier change has made it invalid JSON
  }
}

const nonsense: readonly string[] = [
  ...[
    '',
    ' ',
    '[]',
    'null',
    '"ping"',
    '1',
    '{}',
    '{"type":null}',
    '{"type":["ping"]}',
    '{"type":"__proto__"}',
    '{"type":"next"}',
  ],
  ...[
    '{"type":"connection_ack"}',
    '{"type":"start","id":"1","payload":{}}',
    '{"type":"connection_init","payload":[]}',
    '\0',
    '{',
  ],
  ...[
    '{"type":"ping","payload":"x"}',
    '{"type":"complete"}',
    '{"type":"complete","id":1}',
    '{"type":"subscribe","id":""}',
  ],
  ...[
    '{"type":"connection_init","payload":{"Authorization":{"toString":null}}}',
    '{"__proto__":{"type":"ping"}}',
    'x'.repeat(262_145),
  ],
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
  const changed = Buffer.from(frame)
  const [first = 0, second = 0] = frame
  switch (random.below(8)) {
    case 0:
      changed[0] = (first & 0xf0) | random.below(16) // another opcode
      break
    case 1:
      changed[0] = first ^ random.pick([0x10, 0x20, 0x40, 0x80]) // reserved bits, or the final bit
      break
    case 2:
      changed[1] = second & 0x7f // not masked
      break
    case 3:
      changed[1] = 0x80 | random.below(128) // another length
      break
    case 4:
      return { frames: clientFrame(Buffer.from([0xc3, 0x28, 0xed, 0xa0, 0x80])), isSound: true }
    case 5:
      return { frames: frame.subarray(0, random.below(frame.length)), isSound: false }
    case 6:
      return { frames: clientFrame(Buffer.alloc(random.pick([262_145, 300_000]), ' ')), isSound: true }
    default:
      return { frames: mutateBytes(frame, random), isSound: false }
  }
  return { frames: changed, isSound: false }
}

function control(random: Random): Step {
  const opcode = random.pick([opcodes.ping, opcodes.pong, opcodes.close])
  const code = Buffer.alloc(2)
  code.writeUInt16BE(
    random.pick([0, 999, 1000, 1001, 1004, 1005, 1006, 1011, 1015, 2999, 3000, 4400, 4999, 5000, 65_535]),
  )
  const payload = random.pick([
    Buffer.alloc(0),
    Buffer.alloc(1),
    code,
    Buffer.concat([code, Buffer.alloc(123, 'x')]),
    Buffer.alloc(126),
  ])
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
