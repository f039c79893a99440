import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import pg from 'pg'
import type { OrderListRequest } from '../../src/core/orders/order.ts'
import type { PageRequest } from '../../src/core/page.ts'
import type { SelectedField, SelectedList, Selection } from '../../src/core/selection.ts'
import type { UserListRequest } from '../../src/core/users/user.ts'
import { orderReads } from '../../src/storage/entities/orders.ts'
import { paymentReads } from '../../src/storage/entities/payments.ts'
import { lockContent } from '../../src/storage/entities/post-locks.ts'
import { listOfUsers } from '../../src/storage/entities/user-lists.ts'
import { searchOfUsers } from '../../src/storage/entities/user-search.ts'
import { planning } from '../../src/storage/postgres/settings.ts'
import { postgresDialect, sqliteDialect } from '../../src/storage/select/dialect.ts'
import { compile } from '../../src/storage/select/select.ts'
import type { Statement } from '../../src/storage/sql.ts'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import { postgres, sqlite } from '../support/engines.ts'
import { inForm } from '../support/form.ts'

const title: SelectedField = { kind: 'value', key: 'title', name: 'title' }
const text: SelectedField = { kind: 'value', key: 'text', name: 'text' }
const name: SelectedField = { kind: 'value', key: 'name', name: 'name' }

/** Every list with an offset, and the index that returns its rows in order. */
const lists: Readonly<Record<string, { readonly selection: Selection; readonly index: string }>> = {
  posts: { selection: { fields: [many('posts', [title])] }, index: 'posts_pkey' },
  users: { selection: { fields: [many('users', [name])] }, index: 'users_pkey' },
  'posts published in between': {
    selection: { fields: [{ ...many('posts', [title]), publishedAfter: 2, publishedBefore: 3 }] },
    index: 'posts_by_publication',
  },
  "a user's posts": { selection: { fields: [one('user', [many('posts', [title])])] }, index: 'posts_by_author' },
  "a post's comments": { selection: { fields: [one('post', [many('comments', [text])])] }, index: 'comments_by_post' },
}

/** The same lists after an id, the index that finds their rows, and how SQLite searches it. */
const listsAfter: Readonly<Record<string, (typeof lists)[string] & { readonly search: string }>> = {
  posts: { selection: { fields: [after('posts', [title])] }, index: 'posts_pkey', search: 'PRIMARY KEY (rowid<?)' },
  users: { selection: { fields: [after('users', [name])] }, index: 'users_pkey', search: 'PRIMARY KEY (rowid>?)' },
  "a user's posts": {
    selection: { fields: [one('user', [after('posts', [title])])] },
    index: 'posts_by_author',
    search: 'posts_by_author (author_id=? AND id<?)',
  },
  "a post's comments": {
    selection: { fields: [one('post', [after('comments', [text])])] },
    index: 'comments_by_post',
    search: 'comments_by_post (post_id=? AND id>?)',
  },
}

const page = { limit: 1, offset: 1 }
const pages: readonly PageRequest[] = [page, { limit: 1, offset: 0, after: 1 }]
const sorted = [{}, { sort: '-id' }] as const

/** The lists over HTTP. */
const userLists: Readonly<Record<string, { readonly request: UserListRequest; readonly index: string }>> = {
  'from an offset on': { request: page, index: 'users_pkey' },
  'after an id': { request: { limit: 1, offset: 0, after: 1 }, index: 'users_pkey' },
  'with an e-mail': { request: { ...page, email: 'user@example.com' }, index: 'users_by_email' },
  'with an e-mail, after an id': {
    request: { limit: 1, offset: 0, after: 1, email: 'user@example.com' },
    index: 'users_by_email',
  },
}
/** Of one user, and of all. */
const orderLists: Readonly<
  Record<string, { readonly request: OrderListRequest; readonly index: string; readonly indexOfAll: string }>
> = {
  'from an offset on': { request: page, index: 'orders_by_user', indexOfAll: 'orders_pkey' },
  'after an id': { request: { limit: 1, offset: 0, after: 1 }, index: 'orders_by_user', indexOfAll: 'orders_pkey' },
  'with a status': {
    request: { ...page, status: 'shipped' },
    index: 'orders_by_status',
    indexOfAll: 'orders_of_status',
  },
  'with a status, after an id': {
    request: { limit: 1, offset: 0, after: 1, status: 'shipped' },
    index: 'orders_by_status',
    indexOfAll: 'orders_of_status',
  },
}

describe('A list on PostgreSQL', { skip: postgres.skip }, () => {
  for (const rows of inForm([1_000, 20_000], [1_000, 100_000])) {
    for (const owners of ['one', 'many'] as const) {
      it(`is read, skipped and locked with its own index only, with and without statistics: ${rows} rows of ${owners}`, async () => {
        await using planted = await plantedPostgres(rows, owners === 'one' ? 1 : rows / 10)
        for (const statistics of ['without statistics', 'with statistics']) {
          if (statistics === 'with statistics') await planted.analyze()
          for (const [list, { selection, index }] of Object.entries(lists)) {
            const what = `${list}, ${statistics}`
            const nodes = await planted.plan(compile(selection, postgresDialect))
            assertOrdered(nodes, what)
            assert.deepEqual(scansOf(nodes, index), ['Index Only Scan', 'Index Scan'], what)
          }
          for (const [list, { selection, index }] of Object.entries(listsAfter)) {
            const what = `${list} after an id, ${statistics}`
            const nodes = await planted.plan(compile(selection, postgresDialect))
            assertOrdered(nodes, what)
            assert.deepEqual(scansOf(nodes, index), ['Index Scan'], what)
          }
          for (const sort of sorted) {
            for (const [list, { request, index }] of Object.entries(userLists)) {
              const what = `users ${list}, ${statistics}`
              const users = await planted.plan(listOfUsers(postgresDialect)({ ...request, ...sort }).text)
              assertOrdered(users, what)
              assert.deepEqual(scansOf(users, index), scansFor(request), what)
            }
            for (const [list, { request, index, indexOfAll }] of Object.entries(orderLists)) {
              const what = `orders ${list}, ${statistics}`
              const orders = await planted.plan(orderReads.listOf(postgresDialect)(1, { ...request, ...sort }).text)
              assert.deepEqual(scansOf(orders, index), scansFor(request), what)
              assert.deepEqual(scansOf(orders, 'orders_pkey'), [], what)
              const all = await planted.plan(orderReads.listAll(postgresDialect)({ ...request, ...sort }).text)
              assertOrdered(all, what)
              assert.deepEqual(scansOf(all, indexOfAll), scansFor(request), what)
            }
            for (const request of pages) {
              const list = paymentReads.list(postgresDialect)
              for (const [reach, index] of [
                ['everyone', 'payments_pkey'],
                [1, 'payments_of_payer'],
              ] as const) {
                const what = `payments of ${reach}, ${JSON.stringify(request)}, ${statistics}`
                const payments = await planted.plan(list(reach, { ...request, ...sort }).text)
                assertOrdered(payments, what)
                assert.deepEqual(scansOf(payments, index), scansFor(request), what)
                assert.deepEqual(scansOf(payments, 'orders_payment_id_key'), ['Index Scan'], what)
              }
            }
          }
          if (owners === 'many' && rows > 1_000) await assertSearches(planted, statistics)
          await assertLocks(planted, statistics)
        }
      })
    }
  }
})

describe('A list on SQLite', () => {
  it('is read in index order, and skipped without reading the rows', async () => {
    await using database = await sqlite.create()
    using connection = new SqliteConnection(database.location, 'read')
    const statements = [
      ...Object.entries(lists).map(([what, { selection }]) => [what, compile(selection, sqliteDialect)] as const),
      ...sorted.flatMap(sort => [
        ['GET /users', listOfUsers(sqliteDialect)({ ...page, ...sort }).text] as const,
        ['orders', orderReads.listOf(sqliteDialect)(1, { ...page, ...sort }).text] as const,
        ['users with an e-mail', listOfUsers(sqliteDialect)({ ...page, ...sort, email: 'a@b' }).text] as const,
        [
          'orders with a status',
          orderReads.listOf(sqliteDialect)(1, { ...page, ...sort, status: 'shipped' }).text,
        ] as const,
        [
          'all orders with a status',
          orderReads.listAll(sqliteDialect)({ ...page, ...sort, status: 'shipped' }).text,
        ] as const,
        ["a user's payments", paymentReads.list(sqliteDialect)(1, { ...page, ...sort }).text] as const,
      ]),
    ]
    for (const [what, statement] of statements) {
      const values = Array.from({ length: slotsIn(statement) }, () => 1)
      const run = (prefix: string) => connection.run({ text: `${prefix} ${statement}`, values })
      const plan = run('explain query plan').map(([, , , detail]) => String(detail))
      assert.ok(!plan.some(step => /SCAN (posts|users|comments|orders)$/.test(step)), `${what}: ${plan.join('; ')}`)
      const isWhole = ['posts', 'users', 'GET /users'].includes(what)
      if (isWhole)
        assert.ok(
          plan.some(step => /COVERING INDEX (posts|users)_by_id$/.test(step)),
          plan.join('; '),
        )
      else assert.ok(skipsBeforeLooking(run('explain').map(([, opcode]) => String(opcode))), what)
    }
  })

  it('is found after an id with one search of an index, and not sorted', async () => {
    await using database = await sqlite.create()
    using connection = new SqliteConnection(database.location, 'read')
    for (const [what, { selection, search }] of Object.entries(listsAfter)) {
      const text = `explain query plan ${compile(selection, sqliteDialect)}`
      const plan = connection.run({ text, values: [1, 1, 1].slice(0, slotsIn(text)) }).map(([, , , detail]) => detail)
      assert.equal(plan.filter(step => String(step).includes(search)).length, 1, `${what}: ${plan.join('; ')}`)
      assert.doesNotMatch(plan.join('; '), /SCAN (?:posts|users|comments)|TEMP B-TREE/, what)
    }
  })

  it('is searched for its first row by an index if it starts after an id or has a filter', async () => {
    await using database = await sqlite.create()
    using connection = new SqliteConnection(database.location, 'read')
    const planOf = ({ text, values }: Statement) => {
      const steps = connection.run({ text: `explain query plan ${text}`, values }).map(([, , , detail]) => detail)
      return steps.filter(step => !/^(SCAN listed|CO-ROUTINE|MATERIALIZE)/.test(String(step)))
    }
    const after = { limit: 1, offset: 0, after: 1 }
    const users = listOfUsers(sqliteDialect)
    assert.deepEqual(planOf(users(after)), ['SEARCH users USING INTEGER PRIMARY KEY (rowid>?)'])
    assert.deepEqual(planOf(users({ ...after, email: 'a@b' })), [
      'SEARCH users USING INDEX users_by_email (email_key=? AND id>?)',
    ])
    const orders = orderReads.listOf(sqliteDialect)
    assert.ok(planOf(orders(1, after)).includes('SEARCH orders USING INDEX orders_by_user (user_id=? AND id>?)'))
    const withStatus = planOf(orders(1, { ...after, status: 'shipped' }))
    assert.ok(
      withStatus.includes('SEARCH orders USING INDEX orders_by_status (status=? AND user_id=? AND id>?)'),
      withStatus.join('; '),
    )
    const down = { ...after, sort: '-id' } as const
    const lookUp = 'SEARCH orders USING COVERING INDEX sqlite_autoindex_orders_1 (payment_id=?)'
    assert.deepEqual(planOf(users(down)), ['SEARCH users USING INTEGER PRIMARY KEY (rowid<?)'])
    const all = orderReads.listAll(sqliteDialect)
    assert.deepEqual(planOf(all(down)), ['SEARCH orders USING INTEGER PRIMARY KEY (rowid<?)'])
    assert.deepEqual(planOf(all({ ...down, status: 'shipped' })), [
      'SEARCH orders USING INDEX orders_of_status (status=? AND id<?)',
    ])
    const payments = paymentReads.list(sqliteDialect)
    for (const [reach, search] of [
      ['everyone', 'SEARCH payments USING INTEGER PRIMARY KEY (rowid<?)'],
      [1, 'SEARCH payments USING INDEX payments_by_payer (payer_id=? AND rowid<?)'],
    ] as const)
      assert.deepEqual(planOf(payments(reach, down)), [search, 'CORRELATED SCALAR SUBQUERY 1', lookUp])
  })
})

/** Checks that a search of users reads those that it may find on the indexes of the keys, and others in the order of ids. */
async function assertSearches(planted: Awaited<ReturnType<typeof plantedPostgres>>, statistics: string): Promise<void> {
  for (const isFew of [true, false]) {
    for (const sort of ['id', '-id'] as const) {
      const texts: string[] = []
      const read = async ({ text }: Statement) => {
        if (texts.push(text) === 1) return [isFew ? [1, 1] : [1e6, 1]]
        return [[1, 1]]
      }
      await searchOfUsers({ read, dialect: postgresDialect })('ab', { limit: 1, offset: 0, sort })
      assert.equal(texts.length, isFew ? 3 : 4)
      for (const [at, text] of texts.entries()) {
        const nodes = await planted.plan(text)
        const what = `${text}, ${statistics}: ${nodes.map(({ type, index }) => `${type} ${index ?? ''}`).join('; ')}`
        const indexes = [...new Set(nodes.flatMap(({ index }) => index ?? []))].sort()
        const isByKey = at === 0 || (isFew && at === 1)
        assert.deepEqual(indexes, isByKey ? ['users_by_email', 'users_by_name'] : ['users_pkey'], what)
        assert.ok(!nodes.some(({ type }) => type === 'Seq Scan'), what)
      }
    }
  }
}

/** Checks that a mutation finds the rows that it locks first by their ids, without reading other ones. */
async function assertLocks(planted: Awaited<ReturnType<typeof plantedPostgres>>, statistics: string): Promise<void> {
  const steps = lockContent([1, 2, 3], [4, 5])
  for (let step = steps.next([]); !step.done; step = steps.next([])) {
    const what = `${step.value.text}, ${statistics}`
    const nodes = await planted.plan(step.value.text)
    assert.ok(!nodes.some(({ type }) => /Sort|Seq Scan|Join|Loop/.test(type)), what)
    const scans = nodes.filter(({ index }) => index !== undefined)
    assert.ok(scans.length > 0 && scans.every(({ condition }) => condition !== undefined), what)
  }
}

function slotsIn(statement: string): number {
  return Math.max(...[...statement.matchAll(/\$(\d)/g)].map(([, slot]) => Number(slot)))
}

/** Whether a row of an index is skipped (`IfPos`) before its table row is read. */
function skipsBeforeLooking(opcodes: readonly string[]): boolean {
  const found = opcodes.indexOf('DeferredSeek')
  const next = opcodes.slice(found + 1).find(opcode => ['IfPos', 'Column', 'FinishSeek', 'Rowid'].includes(opcode))
  return found >= 0 && next === 'IfPos'
}

interface Node {
  readonly type: string
  readonly index: string | undefined
  readonly filter: string | undefined
  readonly condition: string | undefined
}

/** Checks that no rows are sorted, read outside of the index, or read and then discarded. */
function assertOrdered(nodes: readonly Node[], what: string): void {
  for (const { type, filter } of nodes) {
    assert.ok(!/Sort|Seq Scan|Bitmap|Join/.test(type), `${what}: ${type}`)
    assert.equal(filter, undefined, what)
  }
}

function scansOf(nodes: readonly Node[], name: string): readonly string[] {
  const scans = nodes.filter(({ index }) => index === name).map(({ type }) => type)
  // The owner of a list is looked up by its id.
  return scans.sort().slice(0, 2)
}

/** Rows are skipped on the index alone. After an id there is nothing to skip. */
function scansFor({ after }: { readonly after?: number }): readonly string[] {
  return after === undefined ? ['Index Only Scan', 'Index Scan'] : ['Index Scan']
}

async function plantedPostgres(rows: number, owners: number) {
  const database = await postgres.create()
  const options = Object.entries(planning).map(([setting, value]) => `-c ${setting}=${value}`)
  const client = new pg.Client({ connectionString: database.location, options: options.join(' ') })
  await client.connect()
  const at = "'2026-01-31T12:00:00.000Z'"
  for (const statement of [
    `alter table users set (autovacuum_enabled = off)`,
    `alter table posts set (autovacuum_enabled = off)`,
    `alter table comments set (autovacuum_enabled = off)`,
    `alter table orders set (autovacuum_enabled = off)`,
    `alter table payments set (autovacuum_enabled = off)`,
    `insert into users (id, name, email, email_key, token_mark, created_at)
     select i, 'User', 'user@example.com', 'user@example.com', 'mark', ${at} from generate_series(1, ${owners}) as i`,
    `insert into posts (author_id, title, content, published_at)
     select i % ${owners} + 1, 'Title', 'Content', ${at} from generate_series(1, ${rows}) as i`,
    `insert into comments (post_id, author_id, text, created_at)
     select i % ${owners} + 1, i % ${owners} + 1, 'Text', ${at} from generate_series(1, ${rows}) as i`,
    `insert into orders (user_id, amount_cents, created_at)
     select i % ${owners} + 1, 100, ${at} from generate_series(1, ${rows}) as i`,
    `insert into payments (payer_id, amount_cents, created_at)
     select i % ${owners} + 1, 100, ${at} from generate_series(1, ${rows}) as i`,
  ]) {
    await client.query(statement)
  }
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
      return nodesOf(explained[0]['QUERY PLAN'][0].Plan)
    },
    async [Symbol.asyncDispose]() {
      await client.end()
      await database[Symbol.asyncDispose]()
    },
  }
}

interface Told {
  readonly 'Node Type': string
  readonly 'Index Name'?: string
  readonly Filter?: string
  readonly 'Index Cond'?: string
  readonly Plans?: readonly Told[]
}

function nodesOf(explained: Told): readonly Node[] {
  const { 'Node Type': type, 'Index Name': index, Filter: filter, 'Index Cond': condition } = explained
  return [{ type, index, filter, condition }, ...(explained.Plans ?? []).flatMap(nodesOf)]
}

function one(relation: string, fields: readonly SelectedField[]): SelectedField {
  return { kind: 'one', key: relation, name: relation, id: 2, fields }
}

function after(relation: string, fields: readonly SelectedField[]): SelectedList {
  return { ...many(relation, fields), offset: undefined, after: 1 }
}

function many(relation: string, fields: readonly SelectedField[]): SelectedList {
  return {
    kind: 'many',
    key: relation,
    name: relation,
    limit: 0,
    offset: 1,
    after: undefined,
    publishedAfter: undefined,
    publishedBefore: undefined,
    fields,
  }
}
