import { demoVerbs } from './entities/demo-data.ts'
import { orderTraits, orderVerbs } from './entities/orders.ts'
import { outboxVerbs } from './entities/outbox.ts'
import { paymentTraits, paymentVerbs } from './entities/payments.ts'
import { postTraits, postVerbs } from './entities/posts.ts'
import { userTraits, userVerbs } from './entities/users.ts'
import type { Catalogue } from './verb.ts'

/** All verbs of the store, by name. */
export const verbs = {
  ...userVerbs,
  ...orderVerbs,
  ...paymentVerbs,
  ...postVerbs,
  ...outboxVerbs,
  ...demoVerbs,
}

const traits = { ...userTraits, ...orderTraits, ...paymentTraits, ...postTraits }

export const catalogue: Catalogue<typeof verbs> = { url: import.meta.url, verbs, traits }
