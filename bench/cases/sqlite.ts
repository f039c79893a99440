import { join } from 'node:path'
import { measure } from '../core/measure.ts'
import type { Tokens } from '../core/tokens.ts'
import { fillSqlite } from '../plant.ts'
import type { Part } from './context.ts'
import { graphqlCases } from './graphql.ts'
import { population } from './population.ts'
import { restCases } from './rest.ts'

const allCases = (tokens: Tokens) => [...restCases(tokens), ...graphqlCases()]

/** Both interfaces on SQLite, all servers side by side. */
export const sqlite: Part = {
  name: 'sqlite',
  cases: allCases,
  async run({ folder, generator, tokens, pace, choose, starter }) {
    const cases = choose(allCases(tokens))
    await using stack = new AsyncDisposableStack()
    const template = join(folder, 'template.db')
    fillSqlite(template, population.posts, population.comments, population.users)
    const names = [...new Set(cases.flatMap(({ contenders }) => contenders))]
    return await measure(generator, cases, await starter(stack).start(names, template), pace)
  },
}
