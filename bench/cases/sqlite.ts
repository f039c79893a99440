import { join } from 'node:path'
import { measure } from '../core/measure.ts'
import { fillSqlite } from '../plant.ts'
import type { Part } from './context.ts'
import { graphqlCases } from './graphql.ts'
import { population } from './population.ts'
import { restCases } from './rest.ts'

/** Both interfaces on SQLite, all servers side by side. */
export const sqlite: Part = {
  name: 'sqlite',
  async run({ folder, generator, tokens, pace, wants, starter }) {
    const cases = [...restCases(tokens), ...graphqlCases()].filter(({ name }) => wants(name))
    if (cases.length === 0) return []
    await using stack = new AsyncDisposableStack()
    const template = join(folder, 'template.db')
    fillSqlite(template, population.posts, population.comments, population.users)
    const names = [...new Set(cases.flatMap(({ contenders }) => contenders))]
    return await measure(generator, cases, await starter(stack).start(names, template), pace)
  },
}
