import { demoVerbs } from './demo-data.ts'
import { orderVerbs } from './orders.ts'
import { outboxVerbs } from './outbox.ts'
import { paymentVerbs } from './payments.ts'
import { postVerbs } from './posts.ts'
import { userVerbs } from './users.ts'
import type { Catalogue } from './verb.ts'

/** Every verb of the store, by name. Each feature adds its own. */
export const verbs = { ...userVerbs, ...orderVerbs, ...paymentVerbs, ...postVerbs, ...outboxVerbs, ...demoVerbs }

export const catalogue: Catalogue<typeof verbs> = { url: import.meta.url, verbs }
