import { join } from 'node:path'
import { duetProgram, duetSettings, skip } from '../core/contenders.ts'
import { measure } from '../core/measure.ts'
import { type Case, type Contender, onceFor } from '../core/model.ts'
import { PostgresDatabases } from '../core/postgres.ts'
import { get, graphql, shuffled } from '../core/requests.ts'
import { BenchServer } from '../core/server.ts'
import { fillSqlite, fillStatements } from '../plant.ts'
import { operations } from '../queries.ts'
import type { Context, Part } from './context.ts'

const sizes = { '1 thousand posts': 1000, '100 thousand posts': 100_000, '1 million posts': 1_000_000 } as const
type Size = keyof typeof sizes
const engines = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const
type Engine = keyof typeof engines
/** One comment each: what the sizes differ in is the depth of the indexes, not the size of the answers. */
const comments = 1

/**
 * Setting the numbers of comments rewrites a large table in the order of a hash. Posts that were written one after the
 * other lie side by side, as they do here afterwards.
 */
const inOrder = 'cluster posts using posts_pkey'

const pageOne = 'page 1'
const byAfter = 'page 10,000 by after'
const byOffset = 'page 10,000 by offset'

/** Duet over small and large tables, and at the start and far into a list. */
function growthOn(engine: Engine): Part {
  return {
    name: `growth-${engine}`,
    cases: () => casesOf(engine),
    async run(context) {
      if (engine === 'postgres' && !PostgresDatabases.isInstalled()) {
        skip('Growth on PostgreSQL', 'its programs are not installed')
        return []
      }
      const cases = context.choose(casesOf(engine))
      const names = new Set(cases.flatMap(({ contenders }) => contenders))
      await using stack = new AsyncDisposableStack()
      return await measure(context.generator, cases, await start(engine, names, context, stack), context.pace)
    },
  }
}

export const growth = (['sqlite', 'postgres'] as const).map(growthOn)

async function start(
  engine: Engine,
  names: ReadonlySet<string>,
  context: Context,
  stack: AsyncDisposableStack,
): Promise<Map<string, Contender>> {
  const contenders = new Map<string, Contender>()
  const databases = engine === 'postgres' ? await PostgresDatabases.start(stack) : undefined
  for (const [name, posts] of Object.entries(sizes)) {
    const served = [name, ...(posts === 100_000 ? [pageOne, byAfter, byOffset] : [])].filter(each => names.has(each))
    if (served.length === 0) continue
    let url: string
    if (databases === undefined) {
      const path = join(context.folder, `growth-${posts}.db`)
      fillSqlite(path, posts, comments)
      url = `sqlite:${path}`
    } else url = await databases.create(`posts_${posts}`, [...fillStatements('postgres', posts, comments), inOrder])
    const own = { DATABASE_URL: url, TOKEN_KEYS: context.tokens.keys }
    const server = stack.use(await BenchServer.start(duetProgram, { ...duetSettings, ...own }))
    const database = databases && { database: databases.processes }
    for (const each of served) contenders.set(each, { name: each, server, ...database })
  }
  return contenders
}

function casesOf(engine: Engine): readonly Case[] {
  const { point, list, nested, nestedOffset, like } = operations
  const some = (size: Size) => shuffled(1000).map(number => Math.ceil((number * sizes[size]) / 1000))
  const deep = (size: Size) => some(size).map(id => Math.max(id, 21))
  const grow = (name: string, title: string, requests: (size: Size) => readonly string[]): Case => ({
    name: `growth-${engine}-${name}`,
    title: `${engines[engine]}, growth. ${title}`,
    connections: 64,
    contenders: Object.keys(sizes),
    requests: onceFor(({ name }) => requests(name as Size)),
    essence: shapeOf,
  })
  const spread = Array.from({ length: 500 }, (_, at) => at)
  const pages: Readonly<Record<string, readonly string[]>> = {
    [pageOne]: spread.map(at => graphql(nested.query, { after: String(100_001 - at) })),
    [byAfter]: spread.map(at => graphql(nested.query, { after: String(511 - at) })),
    [byOffset]: spread.map(at => graphql(nestedOffset.query, { offset: 99_490 + at })),
  }
  return [
    grow('rest-point', 'One user over REST', size =>
      some(size).map(id => get(`/users/${Math.max(1, Math.floor(id / 100))}`)),
    ),
    grow('point', 'One post', size => some(size).map(id => graphql(point.query, { id: String(id) }))),
    grow('list', 'A list of 20 posts', size => deep(size).map(after => graphql(list.query, { after: String(after) }))),
    grow('nested', 'Ten posts with authors and comments', size =>
      deep(size).map(after => graphql(nested.query, { after: String(after) })),
    ),
    grow('like', 'A mutation (like), durably', size => some(size).map(id => graphql(like.query, { id: String(id) }))),
    {
      name: `pages-${engine}`,
      title: `${engines[engine]}, 100 thousand posts. Page 1 and page 10,000 of ten posts with authors and comments`,
      connections: 64,
      contenders: [pageOne, byAfter, byOffset],
      requests: ({ name }) => pages[name] ?? [],
      essence: shapeOf,
    },
  ]
}

/** The status and the form of the body: the same fields, and lists of the same lengths. The rows are others. */
function shapeOf(status: number, body: string): unknown {
  const shape = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shape)
    if (typeof value !== 'object' || value === null) return typeof value
    return Object.entries(value).map(([key, each]) => [key, shape(each)])
  }
  return { status, shape: shape(JSON.parse(body)) }
}
