import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { areInstalled, duetProgram, duetSettings, peer, peerSettings, skip } from '../core/contenders.ts'
import { measure } from '../core/measure.ts'
import { type Case, type Contender, onceFor } from '../core/model.ts'
import { bare, duet, postgraphile } from '../core/names.ts'
import { PostgresDatabases } from '../core/postgres.ts'
import { graphql } from '../core/requests.ts'
import { BenchServer } from '../core/server.ts'
import { fillSqlite, fillStatements } from '../plant.ts'
import type { Context, Part } from './context.ts'
import { graphqlCases } from './graphql.ts'
import { population } from './population.ts'

export const duetOnSqlite = 'Duet on SQLite'

/** The same operations in PostGraphile's own schema. */
const author = 'author: userByAuthorId'
const page = (limit: number, fields: string) =>
  `query ($after: Cursor) { posts: allPosts(first: ${limit}, after: $after, orderBy: [ROW_ID_DESC]) { nodes { ${fields} } } }`
const inPostgraphile: Readonly<Record<string, string>> = {
  'graphql-point': `query ($id: BigInt!) { post: postByRowId(rowId: $id) { id: rowId title likes ${author} { name } } }`,
  'graphql-list': page(20, 'id: rowId title likes publishedAt'),
  nested: page(
    10,
    `id: rowId title content likes publishedAt ${author} { id: rowId name avatar }
     comments: commentsByPostId(first: 10) { nodes { id: rowId text ${author} { name } } }`,
  ),
  like: 'mutation ($id: BigInt!) { likePost(input: { postId: $id }) { likePost: result { id: rowId likes } } }',
}

const allCases = () =>
  graphqlCases()
    .filter(({ name }) => name in inPostgraphile)
    .map(each => ({
      ...each,
      name: `postgres-${each.name}`,
      original: each.name,
      title: `PostgreSQL. ${each.title}`,
      contenders: [duet, postgraphile, bare, duetOnSqlite],
    }))

/** GraphQL on PostgreSQL. */
export const postgres: Part = {
  name: 'postgres',
  cases: allCases,
  async run(context) {
    if (!PostgresDatabases.isInstalled()) {
      skip('PostgreSQL', 'its programs are not installed')
      return []
    }
    await using stack = new AsyncDisposableStack()
    const contenders = await start(context, stack)
    const theirs = contenders.get(postgraphile)
    const cursors = theirs && (await cursorsOf(theirs))
    const cases = context.choose(allCases()).map(({ original, ...each }) => ({
      ...each,
      requests: onceFor(contender =>
        contender.name === postgraphile
          ? requestsIn(inPostgraphile[original] ?? '', each, cursors)
          : each.requests(contender),
      ),
      essence: (status: number, body: string) => ({ status, body: unwrapped(JSON.parse(body)) }),
    }))
    return await measure(context.generator, cases, contenders, context.pace)
  },
}

async function start({ folder, tokens }: Context, stack: AsyncDisposableStack): Promise<Map<string, Contender>> {
  const { posts, comments, users } = population
  const databases = await PostgresDatabases.start(stack)
  const url = await databases.create('posts', fillStatements('postgres', posts, comments, users))
  const bareUrl = await databases.copy('posts', 'bare')
  const file = join(folder, 'postgres.db')
  fillSqlite(file, posts, comments, users)
  copyFileSync(file, join(folder, 'beside.db'))
  const settings = { ...duetSettings, TOKEN_KEYS: tokens.keys }
  const add = async (name: string, args: readonly string[], env: Readonly<Record<string, string>>) => {
    const server = stack.use(await BenchServer.start(args, env))
    contenders.set(name, { name, server, ...(name !== duetOnSqlite && { database: databases.processes }) })
  }
  const contenders = new Map<string, Contender>()
  const postgraphileUrl = await databases.copy('posts', 'postgraphile', [like, 'drop table outbox, event_head'])
  await add(duet, duetProgram, { ...settings, DATABASE_URL: url })
  if (areInstalled()) await add(postgraphile, [peer('postgraphile.mjs'), postgraphileUrl], peerSettings)
  else skip(postgraphile, 'its packages are missing: npm --prefix bench install')
  await add(bare, [peer('bare-postgres.mjs'), bareUrl], peerSettings)
  await add(duetOnSqlite, duetProgram, { ...settings, DATABASE_URL: `sqlite:${join(folder, 'beside.db')}` })
  return contenders
}

/** A custom mutation, as PostGraphile makes them of functions. */
const like = `create function like_post(post_id bigint) returns posts language sql volatile as
  $$ update posts set likes = likes + 1 where id = post_id returning * $$`

/** PostGraphile names the places of a list by cursors. */
async function cursorsOf({ server }: Contender): Promise<ReadonlyMap<string, string>> {
  const query = '{ allPosts(orderBy: [ROW_ID_DESC]) { edges { cursor node { rowId } } } }'
  const response = await fetch(`http://127.0.0.1:${server.port}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  })
  const { data } = (await response.json()) as Edges
  return new Map(data.allPosts.edges.map(({ cursor, node }) => [node.rowId, cursor]))
}

interface Edges {
  readonly data: {
    readonly allPosts: {
      readonly edges: readonly { readonly cursor: string; readonly node: { readonly rowId: string } }[]
    }
  }
}

/** The same requests in the same order. */
async function requestsIn(
  query: string,
  { requests }: Pick<Case, 'requests'>,
  cursors: ReadonlyMap<string, string> | undefined,
): Promise<readonly string[]> {
  const ours = await requests({ name: duet } as Contender)
  return ours.map(request => {
    const { variables } = JSON.parse(request.slice(request.indexOf('\r\n\r\n') + 4))
    const { after } = variables
    return graphql(query, after === undefined ? variables : { after: cursors?.get(after) })
  })
}

/** Without the objects that PostGraphile wraps lists and results of mutations in, and without counts of likes. */
function unwrapped(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unwrapped)
  if (typeof value !== 'object' || value === null) return value
  if ('nodes' in value) return unwrapped(value.nodes)
  if (
    'likePost' in value &&
    typeof value.likePost === 'object' &&
    value.likePost !== null &&
    'likePost' in value.likePost
  )
    return unwrapped(value.likePost)
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, key === 'likes' ? 0 : unwrapped(each)]))
}
