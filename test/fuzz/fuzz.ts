import { runWorkers } from '../faults/payers.ts'
import { inForm } from '../support/form.ts'
import { attempt } from './attempt.ts'
import { type Case, show } from './cases.ts'
import { caseOf, requestIdOf } from './generate.ts'
import { lineProblem } from './judge-log.ts'
import { reduce } from './reduce.ts'
import type { Target } from './target.ts'
import { createTestData, type World } from './world.ts'

export interface Finding {
  readonly index: number
  readonly found: Case
  readonly problem: string
}

/** The number of cases between two checks of the process and its log. */
export const roundSize = 500
/** The number of concurrent clients. Each has its own address, because many limits are counted per address. */
const clients = 16

/** Sends the cases of one round. Returns the problems, each with the case that causes it, if it is known. */
export async function fuzzRound(
  target: Target,
  seed: number,
  indexes: readonly number[],
  note: (sent: Case, outcome: string) => void,
): Promise<readonly Finding[]> {
  const world = await createTestData(target.url, Math.floor((indexes[0] ?? 0) / roundSize))
  const findings: Finding[] = []
  const waiting = [...indexes]
  const sent: number[] = []
  await runWorkers(clients, async worker => {
    for (let index = waiting.shift(); index !== undefined && findings.length === 0; index = waiting.shift()) {
      sent.push(index)
      const made = caseOf(seed, index, world)
      const { problem, outcome } = await attempt(target.port, made, addressOf(worker))
      note(made, outcome)
      if (problem !== undefined) findings.push({ index, found: made, problem })
    }
  })
  const { problem, index } = await processProblem(target, world)
  if (problem === undefined) return findings
  const suspects = index === undefined ? sent.reverse() : [index]
  const suspected = suspects.map((each): Finding => ({ index: each, found: caseOf(seed, each, world), problem }))
  return await blame(target, suspected, world)
}

function addressOf(worker: number): string {
  return `127.0.0.${worker + 2}`
}

/** The problem with the process, and the case that its log names, if any. */
async function processProblem(
  target: Target,
  { token }: World,
): Promise<{ readonly problem?: string; readonly index?: number }> {
  const { state, log } = await target.settle()
  if (state === 'ended') return { problem: `the process has ended: ${target.stderr.slice(-1500)}` }
  if (state === 'silent') await target.kill()
  if (state !== 'ready') return { problem: `the process is ${state}` }
  if (target.stderr !== '') return { problem: `a message on stderr: ${target.stderr.slice(0, 1500)}` }
  for (const line of log) {
    const problem = lineProblem(line, token)
    if (problem === undefined) continue
    const index = Number(new RegExp(`"requestId":"${requestIdOf(0).replace('0', '(\\d+)')}"`).exec(line)?.[1])
    return Number.isNaN(index) ? { problem } : { problem, index }
  }
  return {}
}

/** Sends the suspects alone, one after the other, until the problem occurs again. */
async function blame(target: Target, suspects: readonly Finding[], world: World): Promise<readonly Finding[]> {
  for (const suspect of suspects) {
    if (sameKind(await problemOf(target, suspect.found, world), suspect.problem)) return [suspect]
  }
  const [first] = suspects
  return first === undefined ? [] : [{ ...first, problem: `${first.problem}\nNo case of its round shows this alone.` }]
}

/** The problem when only this case is sent to a process. */
async function problemOf(target: Target, sent: Case, world: World): Promise<string | undefined> {
  await target.revive()
  const { problem } = await attempt(target.port, sent, addressOf(0))
  return (await processProblem(target, world)).problem ?? problem
}

function sameKind(problem: string | undefined, other: string): boolean {
  const kindOf = (text: string | undefined) => text?.split(':', 1)[0]
  return kindOf(problem) === kindOf(other)
}

/** The report of a finding: the smallest case that still fails, and how to send it again. */
export async function report(target: Target, seed: number, { index, found, problem }: Finding): Promise<string> {
  const world = await createTestData(target.url, 1_000_000 + index)
  const fails = async (candidate: Case) => sameKind(await problemOf(target, candidate, world), problem)
  // Each try would wait for an answer that does not come, which takes too long.
  const tries = problem.startsWith('Timed out waiting') ? 0 : 300
  const smallest = await reduce(found, fails, tries)
  return [
    problem,
    `Made from ${found.name}, reduced: ${show(smallest)}`,
    `To repeat: DUET_FUZZ_SEED=${seed} DUET_FUZZ_CASE=${index} npm run test:only -- ${inForm('', '--full ')}test/fuzz/*.test.ts`,
  ].join('\n')
}
