import type { Case } from './cases.ts'
import { validConversation } from './conversations.ts'
import { mutateConversation } from './mutate-conversation.ts'
import { mutateRequest } from './mutate-request.ts'
import { Random } from './random.ts'
import { validRequest } from './requests.ts'
import type { World } from './world.ts'

/** The case with this index for this seed: a valid request or conversation with a few changes. */
export function caseOf(seed: number, index: number, world: World): Case {
  const random = Random.of(seed, index)
  if (random.chance(0.3)) return mutateConversation(validConversation(random, world), random)
  const request = validRequest(random, world)
  // The log lines of the request contain this id.
  const headers = [...request.headers, ['X-Request-Id', requestIdOf(index)] as const]
  return mutateRequest({ ...request, headers }, random)
}

export function requestIdOf(index: number): string {
  return `case-${index}`
}
