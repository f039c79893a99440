import { clientFrame } from '../support/sockets.ts'
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
    () => put(step, 'reset'),
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

/** A frame with another meaning, or an invalid one. */
function mutateFrames(text: string, random: Random): Step {
  const frame = clientFrame(text)
  const changed = (at: number, byte: number) => ({ frames: Buffer.from(frame.with(at, byte)), isSound: false })
  return random.any<Step>(
    () => changed(0, random.below(256)), // another opcode, reserved bits, or the final bit
    () => changed(1, random.below(256)), // another length, or not masked
    () => ({ frames: frame.subarray(0, random.below(frame.length)), isSound: false }),
    () => ({ frames: clientFrame(Buffer.alloc(300_000, ' ')), isSound: true }),
    () => ({ frames: mutateBytes(frame, random), isSound: false }),
  )
}
