import type { Catalogue } from '../../../src/storage/verb.ts'
import { catalogue as real } from '../../../src/storage/verbs.ts'
import { verbs as plain } from '../../storage/contract-verbs.ts'

/** The verbs of the store, and one that runs any statements of a test. */
export const verbs = { ...real.verbs, run: plain.run }

export const catalogue: Catalogue<typeof verbs> = { url: import.meta.url, verbs }
