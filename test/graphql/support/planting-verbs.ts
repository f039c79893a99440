import type { Row, Statement } from '../../../src/storage/sql.ts'
import type { Catalogue, Steps } from '../../../src/storage/verb.ts'
import { catalogue as real } from '../../../src/storage/verbs.ts'

/** The verbs of the store, and one that runs any statements of a test. */
export const verbs = {
  ...real.verbs,
  *run(statements: readonly Statement[]): Steps<readonly (readonly Row[])[]> {
    const answers: (readonly Row[])[] = []
    for (const statement of statements) answers.push(yield statement)
    return answers
  },
}

export const catalogue: Catalogue<typeof verbs> = { url: import.meta.url, verbs }
