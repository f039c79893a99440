import { spawnSync } from 'node:child_process'
import { copyFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { duetProgram, duetSettings, skip } from '../core/contenders.ts'
import { measure } from '../core/measure.ts'
import type { Contender } from '../core/model.ts'
import { duet } from '../core/names.ts'
import { BenchServer } from '../core/server.ts'
import type { Tokens } from '../core/tokens.ts'
import { fillSqlite } from '../plant.ts'
import type { Part } from './context.ts'
import { graphqlCases } from './graphql.ts'
import { population } from './population.ts'
import { restCases } from './rest.ts'

const nameOf = (count: number) => (count === 1 ? duet : `${duet}, ${count} threads`)
const counts = [1, 2, 4].filter(count => count <= Math.max(2, availableParallelism()))
const allCases = (tokens: Tokens) =>
  [...restCases(tokens), ...graphqlCases()]
    .filter(({ name }) => name === 'rest-point' || name === 'nested')
    .map(each => ({
      ...each,
      name: `threads-${each.name}`,
      title: `Serving threads. ${each.title}`,
      note: undefined,
      contenders: counts.map(nameOf),
    }))

/** Duet with several serving threads beside Duet with one. */
export const threads: Part = {
  name: 'threads',
  cases: allCases,
  async run({ folder, generator, tokens, pace, choose }) {
    const help = spawnSync(process.execPath, [...duetProgram.slice(0, -1), '--help'], { encoding: 'utf8' }).stdout
    if (!/^\s*THREADS\b/m.test(help)) {
      skip('The comparison of serving threads', 'this Duet has no setting THREADS')
      return []
    }
    await using stack = new AsyncDisposableStack()
    const template = join(folder, 'threads.db')
    fillSqlite(template, population.posts, population.comments, population.users)
    const contenders = new Map<string, Contender>()
    for (const count of counts) {
      const path = join(folder, `threads-${count}.db`)
      copyFileSync(template, path)
      const own = {
        DATABASE_URL: `sqlite:${path}`,
        TOKEN_KEYS: tokens.keys,
        THREADS: String(count),
        MALLOC_ARENA_MAX: String(count),
      }
      const server = stack.use(await BenchServer.start(duetProgram, { ...duetSettings, ...own }))
      contenders.set(nameOf(count), { name: nameOf(count), server })
    }
    return await measure(generator, choose(allCases(tokens)), contenders, pace)
  },
}
