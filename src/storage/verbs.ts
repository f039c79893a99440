import type { Catalogue } from './verb.ts'

/** Every verb of the store, by name. Each feature adds its own. */
export const verbs = {}

export const catalogue: Catalogue<typeof verbs> = { url: import.meta.url, verbs }
