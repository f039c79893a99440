import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { PageRequest } from '../../src/core/page.ts'
import type { SelectedField, SelectedList } from '../../src/core/selection.ts'
import { orderReads } from '../../src/storage/entities/orders.ts'
import { paymentReads } from '../../src/storage/entities/payments.ts'
import { lockContent } from '../../src/storage/entities/post-locks.ts'
import { userPages } from '../../src/storage/entities/user-lists.ts'
import { searchOfUsers } from '../../src/storage/entities/user-search.ts'
import { planning } from '../../src/storage/postgres/settings.ts'
import { type Dialect, postgresDialect, sqliteDialect } from '../../src/storage/select/dialect.ts'
import { compile } from '../../src/storage/select/select.ts'
import type { Row, Statement } from '../../src/storage/sql.ts'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import { postgres, sqlite } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { shared } from '../support/shared.ts'
import { connectTo } from './transaction.ts'

type Beginning = PageRequest & { readonly sort?: 'id' | '-id' }

/**
 * A list: the index on PostgreSQL that returns its rows in order, how SQLite finds the first row after an id, and how
 * SQLite skips rows: on an index of all ids, or before it reads the row of the table.
 */
type List = readonly [
  text: (dialect: Dialect, beginning: Beginning) => string,
  index: string,
  search: string | undefined,
  skips?: 'on all ids' | 'before reading',
]

const page = { limit: 1, offset: 1 }
const afterId = { limit: 1, offset: 0, after: 1 }
const email = 'user@example.com'
const status = 'shipped'
const byId = 'PRIMARY KEY (rowid>?)'
const early = 'before reading'

const posts = selecting(list => [list('posts', 'title')])
const users = selecting(list => [list('users', 'name')])
const between = selecting(list => [{ ...list('posts', 'title'), publishedAfter: 2, publishedBefore: 3 }])
const postsOfUser = selecting(list => [one('user', [list('posts', 'title')])])
const commentsOfPost = selecting(list => [one('post', [list('comments', 'text')])])

const selections: Readonly<Record<string, List>> = {
  posts: [posts, 'posts_pkey', 'PRIMARY KEY (rowid<?)', 'on all ids'],
  users: [users, 'users_pkey', byId, 'on all ids'],
  'posts published in between': [between, 'posts_by_publication', undefined, early],
  "a user's posts": [postsOfUser, 'posts_by_author', 'posts_by_author (author_id=? AND id<?)', early],
  "a post's comments": [commentsOfPost, 'comments_by_post', 'comments_by_post (post_id=? AND id>?)', early],
}

const { listOf, listAll } = orderReads
const allUsers: List[0] = (dialect, beginning) => userPages(dialect)(beginning).text
const usersByEmail: List[0] = (dialect, beginning) => userPages(dialect)({ ...beginning, email }).text
const orders: List[0] = (dialect, beginning) => listOf(dialect)(1, beginning).text
const ordersOfStatus: List[0] = (dialect, beginning) => listOf(dialect)(1, { ...beginning, status }).text
const allOrders: List[0] = (dialect, beginning) => listAll(dialect)(beginning).text
const allOfStatus: List[0] = (dialect, beginning) => listAll(dialect)({ ...beginning, status }).text
const allPayments: List[0] = (dialect, beginning) => paymentReads.list(dialect)('everyone', beginning).text
const payments: List[0] = (dialect, beginning) => paymentReads.list(dialect)(1, beginning).text
const byStatus = 'orders_by_status (status=? AND user_id=? AND id>?)'

/** The lists over HTTP, which can be sorted. */
const sortedLists: Readonly<Record<string, List>> = {
  'GET /users': [allUsers, 'users_pkey', byId, 'on all ids'],
  'users with an e-mail': [usersByEmail, 'users_by_email', 'users_by_email (email_key=? AND id>?)', early],
  "a user's orders": [orders, 'orders_by_user', 'orders_by_user (user_id=? AND id>?)', early],
  "a user's orders with a status": [ordersOfStatus, 'orders_by_status', byStatus, early],
  'all orders': [allOrders, 'orders_pkey', byId],
  'all orders with a status': [allOfStatus, 'orders_of_status', 'orders_of_status (status=? AND id>?)', early],
  'all payments': [allPayments, 'payments_pkey', byId],
  "a user's payments": [payments, 'payments_of_payer', 'payments_by_payer (payer_id=? AND rowid>?)', early],
}

/** Each list from this beginning, in each order. */
function* statementsFrom(dialect: Dialect, beginning: PageRequest) {
  for (const [what, [text, index, search, skips]] of Object.entries({ ...selections, ...sortedLists })) {
    if (search === undefined && beginning.after !== undefined) continue
    yield { what, index, search, skips, text: text(dialect, beginning) }
    if (!(what in sortedLists)) continue
    const down = { ...beginning, sort: '-id' } as const
    yield { what: `${what}, down`, index, search: search?.replace('>?', '<?'), skips, text: text(dialect, down) }
  }
}

const sizes = inForm(['1000 1', '20000 2000'], ['1000 1', '1000 100', '100000 1', '100000 10000'])
for (const [rows = 0, owners = 0] of sizes.map(size => size.split(' ').map(Number))) {
  it(`a list on PostgreSQL is read, skipped and locked with its own index only, with and without statistics: ${rows} rows of ${owners}`, {
    skip: postgres.skip,
  }, async () => {
    await using planted = await plantedPostgres(rows, owners)
    for (const statistics of ['without statistics', 'with statistics']) {
      if (statistics === 'with statistics') await planted.analyze()
      for (const beginning of [page, afterId]) {
        for (const { what: list, index, text } of statementsFrom(postgresDialect, beginning)) {
          const what = `${list}, ${JSON.stringify(beginning)}, ${statistics}`
          const nodes = await planted.plan(text)
          if (list.startsWith("a user's orders")) assert.deepEqual(scansOf(nodes, 'orders_pkey'), [], what)
          else assertOrdered(nodes, what)
          // Rows are skipped on the index alone. After an id there is nothing to skip.
          const scans = beginning === page ? ['Index Only Scan', 'Index Scan'] : ['Index Scan']
          assert.deepEqual(scansOf(nodes, index), scans, what)
          if (list.includes('payments')) assert.deepEqual(scansOf(nodes, 'orders_payment_id_key'), ['Index Scan'], what)
        }
      }
      if (owners > 1 && rows > 1_000) await assertSearches(planted, statistics)
      await assertLocks(planted, statistics)
    }
  })
}

describe('A list on SQLite', () => {
  const database = shared(() => sqlite.create())

  function explain(prefix: string, text: string, column: number): readonly string[] {
    using connection = new SqliteConnection(database.location, 'read')
    const values = Array.from({ length: slotsIn(text) }, () => 1)
    return connection.run({ text: `${prefix} ${text}`, values }).map(row => String(row[column]))
  }

  it('is read in index order, and skipped without reading the rows', () => {
    for (const { what, skips, text } of statementsFrom(sqliteDialect, page)) {
      const plan = explain('explain query plan', text, 3).join('; ')
      if (skips === 'on all ids') assert.match(plan, /COVERING INDEX (posts|users)_by_id(;|$)/, what)
      if (skips !== 'before reading') continue
      assert.ok(skipsBeforeLooking(explain('explain', text, 1)), what)
      assert.doesNotMatch(plan, /SCAN (posts|users|comments|orders)(;|$)/, what)
    }
  })

  it('is found after an id with one search of an index, and not sorted', () => {
    for (const { what, search = assert.fail(), text } of statementsFrom(sqliteDialect, afterId)) {
      const plan = explain('explain query plan', text, 3)
      assert.equal(plan.filter(step => step.includes(search)).length, 1, `${what}: ${plan.join('; ')}`)
      assert.doesNotMatch(plan.join('; '), /SCAN (?:posts|users|comments|orders|payments)|TEMP B-TREE/, what)
    }
  })

  it('is searched on the indexes of the keys if few are found, and else in the order of ids', async () => {
    for await (const { text, isByKey } of searchesOn(sqliteDialect)) {
      const plan = explain('explain query plan', text, 3).join('; ')
      const keys = [...new Set(plan.match(/users_by_(?:name|email)/g))].sort()
      assert.deepEqual(keys, isByKey ? ['users_by_email', 'users_by_name'] : [], `${text}: ${plan}`)
    }
  })
})

/** Checks that a search of users reads those that it may find on the indexes of the keys, and others in the order of ids. */
async function assertSearches(planted: Planted, statistics: string): Promise<void> {
  for await (const { text, isByKey } of searchesOn(postgresDialect)) {
    const nodes = await planted.plan(text)
    const what = `${text}, ${statistics}: ${JSON.stringify(nodes[0])}`
    const indexes = [...new Set(nodes.flatMap(node => node['Index Name'] ?? []))].sort()
    assert.deepEqual(indexes, isByKey ? ['users_by_email', 'users_by_name'] : ['users_pkey'], what)
    assert.ok(!nodes.some(node => node['Node Type'] === 'Seq Scan'), what)
  }
}

/** The statements of searches that find few or many users. */
async function* searchesOn(dialect: Dialect) {
  for (const isFew of [true, false]) {
    for (const sort of ['id', '-id'] as const) {
      const texts: string[] = []
      const json = [[1, new TextEncoder().encode('{"id":1}')]] as unknown as readonly Row[]
      const found = [['1', '1']] // numbers, ids, or users of PostgreSQL
      const read = async ({ text }: Statement) => {
        if (texts.push(text) === 1 && !isFew) return [[1e6, 1]]
        return text.includes('as blob') ? json : found
      }
      await searchOfUsers({ read, dialect })('ab', { limit: 1, offset: 0, sort })
      assert.equal(texts.length, isFew ? 3 : 4)
      for (const [at, text] of texts.entries()) yield { text, isByKey: at === 0 || (isFew && at === 1) }
    }
  }
}

/** Checks that a mutation finds the rows that it locks first by their ids, without reading other ones. */
async function assertLocks(planted: Planted, statistics: string): Promise<void> {
  const steps = lockContent([1, 2, 3], [4, 5])
  for (let step = steps.next([]); !step.done; step = steps.next([])) {
    const what = `${step.value.text}, ${statistics}`
    const nodes = await planted.plan(step.value.text)
    assert.ok(!nodes.some(node => /Sort|Seq Scan|Join|Loop/.test(node['Node Type'])), what)
    const scans = nodes.filter(node => node['Index Name'] !== undefined)
    assert.ok(scans.length > 0 && scans.every(node => node['Index Cond'] !== undefined), what)
  }
}

const slotsIn = (statement: string) => Math.max(...[...statement.matchAll(/\$(\d)/g)].map(([, slot]) => Number(slot)))

/** Whether a row of an index is skipped (`IfPos`) before its table row is read. */
function skipsBeforeLooking(opcodes: readonly string[]): boolean {
  const found = opcodes.indexOf('DeferredSeek')
  const next = opcodes.slice(found + 1).find(opcode => ['IfPos', 'Column', 'FinishSeek', 'Rowid'].includes(opcode))
  return found >= 0 && next === 'IfPos'
}

/** Checks that no rows are sorted, read outside of the index, or read and then discarded. */
function assertOrdered(nodes: readonly Node[], what: string): void {
  for (const { 'Node Type': type, Filter: filter } of nodes) {
    assert.ok(!/Sort|Seq Scan|Bitmap|Join/.test(type), `${what}: ${type}`)
    assert.equal(filter, undefined, what)
  }
}

function scansOf(nodes: readonly Node[], name: string): readonly string[] {
  const scans = nodes.filter(node => node['Index Name'] === name).map(node => node['Node Type'])
  // The owner of a list is looked up by its id.
  return scans.sort().slice(0, 2)
}

type Planted = Awaited<ReturnType<typeof plantedPostgres>>

async function plantedPostgres(rows: number, owners: number) {
  const database = await postgres.create()
  const client = await connectTo(database.location, planning)
  const at = "'2026-01-31T12:00:00.000Z'"
  for (const table of ['users', 'posts', 'comments', 'orders', 'payments'])
    await client.query(`alter table ${table} set (autovacuum_enabled = off)`)
  const [owner, each] = [`i % ${owners} + 1`, `from generate_series(1, ${rows}) as i`]
  await client.query(`
    insert into users (id, name, email, email_key, token_mark, created_at)
      select i, 'User', '${email}', '${email}', 'mark', ${at} from generate_series(1, ${owners}) as i;
    insert into posts (author_id, title, content, published_at) select ${owner}, 'Title', 'Content', ${at} ${each};
    insert into comments (post_id, author_id, text, created_at) select ${owner}, ${owner}, 'Text', ${at} ${each};
    insert into orders (user_id, amount_cents, created_at) select ${owner}, 100, ${at} ${each};
    insert into payments (payer_id, amount_cents, created_at) select ${owner}, 100, ${at} ${each}`)
  let prepared = 0
  return {
    analyze: () => client.query('analyze'),
    /** The plan that a connection of the service uses for the statement. */
    async plan(statement: string): Promise<readonly Node[]> {
      const called = `plan_${++prepared}`
      await client.query(`prepare ${called} as ${statement}`)
      const { rows: counted } = await client.query(
        `select cardinality(parameter_types) as n from pg_prepared_statements where name = '${called}'`,
      )
      const values = Array.from({ length: counted[0].n }, () => 'null').join(', ')
      const { rows: explained } = await client.query(`explain (format json) execute ${called}(${values})`)
      return nodesOf(JSON.parse(explained[0]['QUERY PLAN'])[0].Plan)
    },
    async [Symbol.asyncDispose]() {
      await client.end()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** A node of a plan, as PostgreSQL tells it. */
interface Node {
  readonly 'Node Type': string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Filter?: string
  readonly Plans?: readonly Node[]
}

const nodesOf = (root: Node): readonly Node[] => [root, ...(root.Plans ?? []).flatMap(nodesOf)]

/** The statement of a selection, whose list gets its beginning. */
function selecting(fieldsOf: (list: (relation: string, value: string) => SelectedList) => readonly SelectedField[]) {
  return (dialect: Dialect, { after }: Beginning): string => {
    const list = (relation: string, value: string): SelectedList => ({
      kind: 'many',
      key: relation,
      name: relation,
      limit: 0,
      offset: after === undefined ? 1 : undefined,
      after,
      publishedAfter: undefined,
      publishedBefore: undefined,
      fields: [{ kind: 'value', key: value, name: value }],
    })
    return compile({ fields: fieldsOf(list) }, dialect)
  }
}

function one(name: string, fields: readonly SelectedField[]): SelectedField {
  return { kind: 'one', key: name, name, id: 2, fields }
}
