import type { Actor } from '../../core/actor.ts'
import type { RequestLog } from '../../http/request-log.ts'
import { statusOfCode } from '../errors.ts'
import type { Outcome, Run } from './run.ts'

/**
 * Logs an operation of a socket: one line when it has ended, and one when it is a subscription that has `begun` slowly,
 * which is not slow because it lasts long.
 */
export function logRun(log: RequestLog, run: Run, outcome: Outcome | 'begun', client: string, actor: Actor): void {
  const { name: operation, roots, since, waits, hasBegun, events, bytes } = run
  const ms = performance.now() - since
  const isOver = outcome !== 'begun'
  const isFailure = outcome in statusOfCode && statusOfCode[outcome as keyof typeof statusOfCode] >= 500
  const message = isOver ? 'operation ended' : 'subscription begun'
  log.tell(message, isOver && hasBegun ? 0 : ms, waits, !isOver ? 'minor' : isFailure ? 'failure' : 'usual', () => ({
    traceparent: waits?.span?.traceparent,
    client,
    user: actor.kind === 'user' ? actor.id : undefined,
    operation,
    fields: roots.join() || undefined,
    outcome,
    events: hasBegun ? events : undefined,
    bytes,
    ms: Math.round(ms * 100) / 100,
  }))
}
