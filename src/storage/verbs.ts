import { demoVerbs } from './demo-data.ts'
import { userVerbs } from './users.ts'
import type { Catalogue } from './verb.ts'

/** Every verb of the store, by name. Each feature adds its own. */
export const verbs = { ...userVerbs, ...demoVerbs }

export const catalogue: Catalogue<typeof verbs> = { url: import.meta.url, verbs }
