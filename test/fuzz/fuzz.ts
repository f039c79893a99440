import { runWorkers } from '../faults/payers.ts'
import { inForm } from '../support/form.ts'
import { type Case, show } from './cases.ts'
import { attempt, lineProblem } from './judge.ts'
import { mutateConversation } from './mutate-conversation.ts'
import { mutateRequest } from './mutate-request.ts'
import { validConversation, validRequest } from './requests.ts'
import type { Target } from './target.ts'
import { Random } from './values.ts'
import { createTestData, type World } from './world.ts'

/** The number of cases between two checks of the process and its log. */
export const roundSize = 500
/** The number of concurrent clients. Each has its own address, because many limits are counted per address. */
const clients = 16

/** The case with this index for this seed: a valid request or conversation with a few changes. */
export function caseOf(seed: number, index: number, world: World): Case {
  const random = new Random(seed, index)
  if (random.chance(0.3)) return mutateConversation(validConversation(random, world), random)
  const request = validRequest(random, world)
  // The log lines of the request contain this id.
  const headers = [...request.headers, ['X-Request-Id', `case-${index}`] as const]
  return mutateRequest({ ...request, headers }, random)
}

/** Sends the cases of one round. Returns a report if there is a problem, with the case that causes it, if it is known. */
export async function fuzzRound(
  target: Target,
  seed: number,
  indexes: readonly number[],
  note: (sent: Case, outcome: string) => void,
): Promise<string | undefined> {
  const world = await createTestData(target.url, Math.floor((indexes[0] ?? 0) / roundSize))
  const waiting = [...indexes]
  /** The latest cases of the clients: one of them has ended the process, if it has ended. */
  const latest: number[] = []
  let found: string | undefined
  const report = (problem: string, suspects: readonly number[]) =>
    [
      problem,
      ...suspects.map(index => `Case ${index}: ${show(caseOf(seed, index, world))}`),
      `To repeat one: DUET_FUZZ_SEED=${seed} DUET_FUZZ_CASE=<number> npm run test:only -- ${inForm('', '--full ')}test/fuzz/*.test.ts`,
    ].join('\n')
  await runWorkers(clients, async worker => {
    for (let index = waiting.shift(); index !== undefined && found === undefined; index = waiting.shift()) {
      latest[worker] = index
      const made = caseOf(seed, index, world)
      const { problem, outcome } = await attempt(target.port, made, `127.0.0.${worker + 2}`)
      note(made, outcome)
      if (problem !== undefined) found ??= report(problem, [index])
    }
  })
  const { problem: ended, log } = await target.settle()
  const line = log.find(each => lineProblem(each, world.token) !== undefined)
  const problem = ended ?? (line && lineProblem(line, world.token))
  if (problem === undefined) return found
  // The log line of a request contains the number of its case.
  const index = ended === undefined && /"requestId":"case-(\d+)"/.exec(line ?? '')?.[1]
  return report(`${problem}\n${found ?? ''}`, index ? [Number(index)] : latest)
}
