import type { Operation, Policy } from '../../src/core/access.ts'

/**
 * The permissions that the service promises, written by hand and not derived from the code. An intended change of
 * `core/access.ts` must be made here too.
 */
export const promised: Readonly<Record<Operation, Readonly<Record<Policy, Verdicts>>>> = {
  'list users': { open: ['yes', 'yes', 'yes', 'yes'], enforced: [401, 403, 403, 'yes'] },
  'read a user': { open: ['yes', 'yes', 'yes', 'yes'], enforced: [401, 'yes', 403, 'yes'] },
  'read oneself': { open: [401, 'yes', 'yes', 'yes'], enforced: [401, 'yes', 'yes', 'yes'] },
  'create a user': { open: ['yes', 'yes', 'yes', 'yes'], enforced: ['yes', 'yes', 'yes', 'yes'] },
  'replace a user': { open: ['yes', 'yes', 'yes', 'yes'], enforced: [401, 'yes', 403, 'yes'] },
  'change a user': { open: ['yes', 'yes', 'yes', 'yes'], enforced: [401, 'yes', 403, 'yes'] },
  'change an existing password': { open: [401, 'yes', 403, 'yes'], enforced: [401, 'yes', 403, 'yes'] },
  'delete a user': { open: ['yes', 'yes', 'yes', 'yes'], enforced: [401, 'yes', 403, 'yes'] },
  'revoke own tokens': { open: [401, 'yes', 'yes', 'yes'], enforced: [401, 'yes', 'yes', 'yes'] },
  'list orders': { open: ['yes', 'yes', 'yes', 'yes'], enforced: [401, 'yes', 403, 'yes'] },
  'create an order': { open: ['yes', 'yes', 'yes', 'yes'], enforced: [401, 'yes', 403, 'yes'] },
  'read an order': { open: ['yes', 'yes', 'yes', 'yes'], enforced: [401, 'yes', 404, 'yes'] },
  'pay an order': { open: ['yes', 'yes', 'yes', 'yes'], enforced: [401, 'yes', 404, 'yes'] },
  'cancel an order': { open: ['yes', 'yes', 'yes', 'yes'], enforced: [401, 'yes', 'no-op', 'yes'] },
  'make a payment': { open: ['yes', 'yes', 'yes', 'yes'], enforced: [401, 'yes', 'yes', 'yes'] },
  'read a payment': { open: ['yes', 'yes', 'yes', 'yes'], enforced: [401, 'yes', 404, 'yes'] },
  'read posts': { open: ['yes', 'yes', 'yes', 'yes'], enforced: ['yes', 'yes', 'yes', 'yes'] },
  "read others' e-mails": { open: ['yes', 'yes', 'yes', 'yes'], enforced: [401, 403, 403, 'yes'] },
  'create a post': { open: [401, 'yes', 'yes', 'yes'], enforced: [401, 'yes', 'yes', 'yes'] },
  'update a post': { open: [401, 'yes', 403, 'yes'], enforced: [401, 'yes', 403, 'yes'] },
  'delete a post': { open: [401, 'yes', 403, 'yes'], enforced: [401, 'yes', 403, 'yes'] },
  'like a post': { open: ['yes', 'yes', 'yes', 'yes'], enforced: [401, 'yes', 'yes', 'yes'] },
  'add a comment': { open: [401, 'yes', 'yes', 'yes'], enforced: [401, 'yes', 'yes', 'yes'] },
  'update a comment': { open: [401, 'yes', 403, 'yes'], enforced: [401, 'yes', 403, 'yes'] },
  'delete a comment': { open: [401, 'yes', 403, 'yes'], enforced: [401, 'yes', 403, 'yes'] },
}

/**
 * `yes`: done, answered with the success status. `no-op`: answered with 204, and nothing changes. Otherwise the status
 * of the refusal.
 */
export type Verdict = 'yes' | 'no-op' | 401 | 403 | 404

/** A caller without a token, the owner, another user, an admin. */
type Verdicts = readonly [anonymous: Verdict, owner: Verdict, otherUser: Verdict, admin: Verdict]
