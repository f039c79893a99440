import { demoVerbs } from './entities/demo-data.ts'
import { mends } from './entities/mends.ts'
import { orderVerbs } from './entities/orders.ts'
import { outboxVerbs } from './entities/outbox.ts'
import { resetVerbs } from './entities/password-resets.ts'
import { paymentVerbs } from './entities/payments.ts'
import { postsNamedBy, postVerbs } from './entities/posts.ts'
import { roleVerbs } from './entities/roles.ts'
import { userVerbs } from './entities/users.ts'
import type { Catalogue } from './verb.ts'

export const verbs = {
  ...userVerbs,
  ...resetVerbs,
  ...roleVerbs,
  ...orderVerbs,
  ...paymentVerbs,
  ...postVerbs,
  ...outboxVerbs,
  ...demoVerbs,
  ...mends,
}

export const catalogue: Catalogue<typeof verbs> = {
  url: import.meta.url,
  verbs,
  rowOf(name, [, changes = []]) {
    if (name === 'createUser') return 'counter of users'
    return name === 'changePosts' ? postsNamedBy(changes)[0] : undefined
  },
}
