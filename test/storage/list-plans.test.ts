import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import pg from 'pg'
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
import type { Statement } from '../../src/storage/sql.ts'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import { postgres, sqlite } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { shared } from '../support/shared.ts'

type Beginning = PageRequest & { readonly sort?: 'id' | '-id' }

/**
 * A list: the index on PostgreSQL that returns its rows in order, how SQLite finds the first row after an id, and how
 * SQLite skips rows: on an index of all ids, or before it reads the row of the table.
 */
type List = readonly [
  index: string,
  search: string | undefined,
  skips: 'on all ids' | 'before reading' | undefined,
  text: (dialect: Dialect, beginning: Beginning) => string,
]

const page = { limit: 1, offset: 1 }
const afterId = { limit: 1, offset: 0, after: 1 }
const email = 'user@example.com'
const status = 'shipped'
const byId = 'PRIMARY KEY (rowid>?)'

const selections: Readonly<Record<string, List>> = {
  posts: ['posts_pkey', 'PRIMARY KEY (rowid<?)', 'on all ids', selecting(list => [list('posts', 'title')])],
  users: ['users_pkey', byId, 'on all ids', selecting(list => [list('users', 'name')])],
  'posts published in between': [
    'posts_by_publication',
    undefined,
    'before reading',
    selecting(list => [{ ...list('posts', 'title'), publishedAfter: 2, publishedBefore: 3 }]),
  ],
  "a user's posts": [
    'posts_by_author',
    'posts_by_author (author_id=? AND id<?)',
    'before reading',
    selecting(list => [one('user', [list('posts', 'title')])]),
  ],
  "a post's comments": [
    'comments_by_post',
    'comments_by_post (post_id=? AND id>?)',
    'before reading',
    selecting(list => [one('post', [list('comments', 'text')])]),
  ],
}

/** The lists over HTTP, which can be sorted. */
const sortedLists: Readonly<Record<string, List>> = {
  'GET /users': ['users_pkey', byId, 'on all ids', (dialect, beginning) => userPages(dialect)(beginning).text],
  'users with an e-mail': [
    'users_by_email',
    'users_by_email (email_key=? AND id>?)',
    'before reading',
    (dialect, beginning) => userPages(dialect)({ ...beginning, email }).text,
  ],
  "a user's orders": [
    'orders_by_user',
    'orders_by_user (user_id=? AND id>?)',
    'before reading',
    (dialect, beginning) => orderReads.listOf(dialect)(1, beginning).text,
  ],
  "a user's orders with a status": [
    'orders_by_status',
    'orders_by_status (status=? AND user_id=? AND id>?)',
    'before reading',
    (dialect, beginning) => orderReads.listOf(dialect)(1, { ...beginning, status }).text,
  ],
  'all orders': ['orders_pkey', byId, undefined, (dialect, beginning) => orderReads.listAll(dialect)(beginning).text],
  'all orders with a status': [
    'orders_of_status',
    'orders_of_status (status=? AND id>?)',
    'before reading',
    (dialect, beginning) => orderReads.listAll(dialect)({ ...beginning, status }).text,
  ],
  'all payments': [
    'payments_pkey',
    byId,
    undefined,
    (dialect, beginning) => paymentReads.list(dialect)('everyone', beginning).text,
  ],
  "a user's payments": [
    'payments_of_payer',
    'payments_by_payer (payer_id=? AND rowid>?)',
    'before reading',
    (dialect, beginning) => paymentReads.list(dialect)(1, beginning).text,
  ],
}

/** Each list from this beginning, in each order. */
function* statementsFrom(dialect: Dialect, beginning: PageRequest) {
  for (const [what, [index, search, skips, text]] of Object.entries({ ...selections, ...sortedLists })) {
    if (search === undefined && beginning.after !== undefined) continue
    yield { what, index, search, skips, text: text(dialect, beginning) }
    if (!(what in sortedLists)) continue
    const down = { ...beginning, sort: '-id' } as const
    yield { what: `${what}, down`, index, search: search?.replace('>?', '<?'), skips, text: text(dialect, down) }
  }
}

describe('A list on PostgreSQL', { skip: postgres.skip }, () => {
  const sizes = inForm(
    [
      [1_000, 1],
      [20_000, 2_000],
    ] as const,
    [
      [1_000, 1],
      [1_000, 100],
      [100_000, 1],
      [100_000, 10_000],
    ] as const,
  )
  for (const [rows, owners] of sizes) {
    it(`is read, skipped and locked with its own index only, with and without statistics: ${rows} rows of ${owners}`, async () => {
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
            if (list.includes('payments'))
              assert.deepEqual(scansOf(nodes, 'orders_payment_id_key'), ['Index Scan'], what)
          }
        }
        if (owners > 1 && rows > 1_000) await assertSearches(planted, statistics)
        await assertLocks(planted, statistics)
      }
    })
  }
})

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

async function plantedPostgres(rows: number, owners: number) {
  const database = await postgres.create()
  const options = Object.entries(planning).map(([setting, value]) => `-c ${setting}=${value}`)
  const client = new pg.Client({ connectionString: database.location, options: options.join(' ') })
  await client.connect()
  const at = "'2026-01-31T12:00:00.000Z'"
  for (const statement of [
    ...'users posts comments orders payments'
      .split(' ')
      .map(table => `alter table ${table} set (autovacuum_enabled = off)`),
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

function one(relation: string, fields: readonly SelectedField[]): SelectedField {
  return { kind: 'one', key: relation, name: relation, id: 2, fields }
}
