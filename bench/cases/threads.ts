import { spawnSync } from 'node:child_process'
import { copyFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { duetProgram, duetSettings, skip } from '../core/contenders.ts'
import { measure } from '../core/measure.ts'
import type { Contender } from '../core/model.ts'
import { duet } from '../core/names.ts'
import { BenchServer } from '../core/server.ts'
import { fillSqlite } from '../plant.ts'
import type { Part } from './context.ts'
import { graphqlCases } from './graphql.ts'
import { population } from './population.ts'
import { restCases } from './rest.ts'

/** Duet with several serving threads beside Duet with one. */
export const threads: Part = {
  name: 'threads',
  async run({ folder, generator, tokens, pace, wants }) {
    const cases = [...restCases(tokens), ...graphqlCases()]
      .filter(({ name }) => name === 'rest-point' || name === 'nested')
      .map(each => ({ ...each, name: `threads-${each.name}`, title: `Serving threads. ${each.title}` }))
      .filter(({ name }) => wants(name))
    if (cases.length === 0) return []
    const help = spawnSync(process.execPath, [duetProgram[0], '--help'], { encoding: 'utf8' }).stdout
    if (!/^\s*THREADS\b/m.test(help)) {
      skip('The comparison of serving threads', 'this Duet has no setting THREADS')
      return []
    }
    await using stack = new AsyncDisposableStack()
    const template = join(folder, 'threads.db')
    fillSqlite(template, population.posts, population.comments, population.users)
    const counts = [1, 2, 4].filter(count => count <= Math.max(2, availableParallelism()))
    const contenders = new Map<string, Contender>()
    for (const count of counts) {
      const path = join(folder, `threads-${count}.db`)
      copyFileSync(template, path)
      const own = { DATABASE_URL: `sqlite:${path}`, TOKEN_KEYS: tokens.keys, THREADS: String(count) }
      const server = stack.use(await BenchServer.start(duetProgram, { ...duetSettings, ...own }))
      const name = count === 1 ? duet : `${duet}, ${count} threads`
      contenders.set(name, { name, server })
    }
    const names = [...contenders.keys()]
    return await measure(
      generator,
      cases.map(each => ({ ...each, contenders: names })),
      contenders,
      pace,
    )
  },
}
