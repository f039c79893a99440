import type { Clock } from './clock.ts'
import type { SessionKeeper } from './session.ts'
import type { SocketConstructor } from './socket.ts'

export interface Internals {
  readonly clock: Clock
  readonly keeper: SessionKeeper
  /** Called when the connection is closed. */
  readonly closing: Set<() => void>
  readonly WebSocket: SocketConstructor | undefined
}

/** The parts of a connection that only the areas use, not applications. */
export const internals = new WeakMap<object, Internals>()

export function internalsOf(duet: object): Internals {
  const found = internals.get(duet)
  if (found === undefined) throw new TypeError('This is not what connect() returned.')
  return found
}
