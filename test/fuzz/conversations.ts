import type { Conversation, Step } from './cases.ts'
import { operationOf } from './operations.ts'
import type { Random } from './random.ts'
import { sometimesByHash } from './requests.ts'
import type { World } from './world.ts'

/** The messages of a well-behaved client on a socket. Together they include every type of message. */
export function validConversation(random: Random, world: World): Conversation {
  const says: { readonly type: string; readonly id?: string; readonly payload?: unknown }[] = []
  const authorization = { Authorization: `Bearer ${world.token}` }
  const isInHeader = random.chance(0.2)
  const payload = !isInHeader && random.chance(0.6) ? authorization : random.pick([undefined, {}, { client: 'fuzz' }])
  if (random.chance(0.1)) says.push({ type: 'ping' })
  says.push({ type: 'connection_init', payload })
  const ids: string[] = []
  for (let left = random.between(1, 4); left > 0; left--) {
    if (random.chance(0.25)) says.push({ type: 'ping', payload: { sent: random.below(1000) } })
    if (random.chance(0.1)) says.push({ type: 'pong', payload: {} })
    if (ids.length > 0 && random.chance(0.2)) says.push({ type: 'complete', id: random.pick(ids) })
    const id = `operation-${ids.length}`
    ids.push(id)
    says.push({ type: 'subscribe', id, payload: operation(random, world) })
  }
  if (random.chance(0.4)) says.push({ type: 'complete', id: random.pick(ids) })
  return {
    kind: 'conversation',
    name: 'a conversation',
    headers: isInHeader ? Object.entries(authorization) : [],
    steps: says.map((said): Step => ({ text: JSON.stringify(said), isAcknowledged: said.type === 'connection_init' })),
  }
}

function operation(random: Random, world: World): object {
  const kind = random.pick(['query', 'mutation', 'subscription', 'subscription'] as const)
  const made = sometimesByHash(
    operationOf(kind, random, () => world.idFor('posts', random)),
    random,
  )
  return random.chance(0.1) ? { ...made, extensions: random.pick([{}, { positions: true }]) } : made
}
