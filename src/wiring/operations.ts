import type { Config } from '../config.ts'
import { Access } from '../core/access.ts'
import type { EventBus } from '../core/events.ts'
import { Orders } from '../core/orders/operations.ts'
import { Payments } from '../core/payments/operations.ts'
import type { TokenSigner } from '../core/ports.ts'
import { Posts } from '../core/posts/operations.ts'
import type { Store } from '../core/store.ts'
import { Tokens } from '../core/tokens/operations.ts'
import { Users } from '../core/users/operations.ts'
import type { Limits } from '../limits/memory-limits.ts'
import type { Base } from './base.ts'
import { loginLimits } from './limiters.ts'

interface Parts {
  readonly store: Store
  readonly bus: EventBus
  readonly signer: TokenSigner
  readonly limits: Limits
}

/** The core: everything that callers can ask the service to do. */
export function createOperations(config: Config, base: Base, { store, bus, signer, limits }: Parts) {
  const access = new Access(config.accessPolicy, config.signUp)
  const parts = { ...base, store, bus, access }
  const { idempotencyTtlSeconds: keyTtlSeconds, sessionTtlSeconds } = config
  return {
    users: new Users(parts),
    orders: new Orders(parts),
    payments: new Payments({ ...parts, keyTtlSeconds }),
    posts: new Posts(parts),
    tokens: new Tokens({ ...parts, signer, sessionTtlSeconds, limits: loginLimits(config.loginLimitMax, limits) }),
  }
}
