import type { Actor } from './actor.ts'
import { AppError } from './errors.ts'

/**
 * `open` is the literal access table of the specification, for use on a developer's own machine. Every other deployment
 * uses `enforced`.
 */
export type Policy = 'open' | 'enforced'

/** Who may create users. `closed`: only admins. */
export type SignUp = 'open' | 'closed'

type Rule = 'anyone' | 'anyone with a token' | 'the owner or an admin' | 'an admin'

/** Says who may do what. This is the only place that decides it; both interfaces reach it through the operations. */
export const accessTable = {
  'list users': { open: 'anyone', enforced: 'an admin' },
  'read a user': { open: 'anyone', enforced: 'the owner or an admin' },
  'read oneself': { open: 'anyone with a token', enforced: 'anyone with a token' },
  'create a user': { open: 'anyone', enforced: 'anyone' }, // while sign-up is closed: an admin
  'replace a user': { open: 'anyone', enforced: 'the owner or an admin' },
  'change a user': { open: 'anyone', enforced: 'the owner or an admin' },
  'change an existing password': { open: 'the owner or an admin', enforced: 'the owner or an admin' },
  'delete a user': { open: 'anyone', enforced: 'the owner or an admin' },
  'read a role': { open: 'an admin', enforced: 'an admin' },
  'change a role': { open: 'an admin', enforced: 'an admin' },
  'revoke own tokens': { open: 'anyone with a token', enforced: 'anyone with a token' },
  'request a password reset': { open: 'anyone', enforced: 'anyone' },
  'reset a password': { open: 'anyone', enforced: 'anyone' }, // who has the secret
  'list orders': { open: 'anyone', enforced: 'the owner or an admin' },
  'list all orders': { open: 'anyone', enforced: 'an admin' },
  'create an order': { open: 'anyone', enforced: 'the owner or an admin' },
  'read an order': { open: 'anyone', enforced: 'the owner or an admin' },
  'pay an order': { open: 'anyone', enforced: 'the owner or an admin' },
  'cancel an order': { open: 'anyone', enforced: 'the owner or an admin' },
  'make a payment': { open: 'anyone', enforced: 'anyone with a token' },
  'list payments': { open: 'anyone', enforced: 'the owner or an admin' }, // others list their own
  'read a payment': { open: 'anyone', enforced: 'the owner or an admin' },
  'read posts': { open: 'anyone', enforced: 'anyone' },
  "read others' e-mails": { open: 'anyone', enforced: 'an admin' },
  'create a post': { open: 'anyone with a token', enforced: 'anyone with a token' },
  'update a post': { open: 'the owner or an admin', enforced: 'the owner or an admin' },
  'delete a post': { open: 'the owner or an admin', enforced: 'the owner or an admin' },
  'like a post': { open: 'anyone', enforced: 'anyone with a token' },
  'add a comment': { open: 'anyone with a token', enforced: 'anyone with a token' },
  'update a comment': { open: 'the owner or an admin', enforced: 'the owner or an admin' },
  // Its author and the author of its post are both owners.
  'delete a comment': { open: 'the owner or an admin', enforced: 'the owner or an admin' },
} as const satisfies Readonly<Record<string, Readonly<Record<Policy, Rule>>>>

export type Operation = keyof typeof accessTable

export class Access {
  readonly policy: Policy
  readonly #signUp: SignUp

  constructor(policy: Policy, signUp: SignUp = 'open') {
    this.policy = policy
    this.#signUp = signUp
  }

  /** `owner` is the id of the user that the operation is about, if there is one. */
  allows(actor: Actor, operation: Operation, owner?: number): boolean {
    const isClosed = operation === 'create a user' && this.#signUp === 'closed'
    const rule: Rule = isClosed ? 'an admin' : accessTable[operation][this.policy]
    if (rule === 'anyone') return true
    if (actor.kind === 'anonymous') return false
    if (rule === 'anyone with a token' || actor.role === 'admin') return true
    return rule === 'the owner or an admin' && actor.id === owner
  }

  require(actor: Actor, operation: Operation, owner?: number): void {
    if (!this.allows(actor, operation, owner)) throw notPermitted(actor)
  }

  /** For resources that look absent to callers who may not see them: returns whose resources the actor may reach. */
  reach(actor: Actor, operation: Operation): Reach {
    if (this.allows(actor, operation)) return 'everyone'
    if (actor.kind === 'anonymous') throw notPermitted(actor)
    return actor.id
  }
}

/** Whose resources an actor may reach: those of everyone, or only those of the user with this id. */
export type Reach = 'everyone' | number

export function invalidToken(): AppError {
  return new AppError('unauthenticated', 'Invalid or expired token')
}

/** An anonymous caller may still send a token, so it gets `unauthenticated`; an identified caller gets `forbidden`. */
export function notPermitted(actor: Actor): AppError {
  return actor.kind === 'anonymous'
    ? new AppError('unauthenticated', 'Authentication required')
    : new AppError('forbidden', 'Not permitted')
}
