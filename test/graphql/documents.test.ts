import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import type { Selection } from '../../src/core/selection.ts'
import { Refusal } from '../../src/graphql/errors.ts'
import { Documents, type PreparedOperation } from '../../src/graphql/language/documents.ts'
import { keptPlans, PlanSize } from '../../src/graphql/language/plans.ts'
import { loadSchema } from '../../src/graphql/language/schema.ts'
import { AutomaticDocuments } from '../../src/graphql/persisted/automatic.ts'
import { planQuery, type QueryPlan } from '../../src/graphql/query.ts'
import { postgresDialect } from '../../src/storage/select/dialect.ts'
import { compile } from '../../src/storage/select/select.ts'
import { newPost } from '../subscriptions/posts.ts'
import { notInQuick } from '../support/form.ts'
import { assertRefused, dataOf, query, read, repeat } from '../support/graphql.ts'
import { shared } from '../support/shared.ts'
import { SocketClient } from '../support/sockets.ts'
import { startWithPost } from './support/app.ts'
import { growthOf, megabytes } from './support/memory.ts'
import { persisted, sha256 } from './support/requests.ts'

const schema = loadSchema()

function newDocuments(): Documents {
  return new Documents({ schema, maxDepth: 5, suggestions: false })
}

test('an invalid document is refused every time, and not cached', { skip: notInQuick }, () => {
  const documents = newDocuments()
  const refused = [
    '{',
    '{ nothing }',
    '{ posts { author { posts { author { posts { author { id } } } } } } }',
    ','.repeat(70_000),
  ]
  for (const text of [...refused, ...refused]) assert.throws(() => documents.prepare(text), Refusal)
  const grown = growthOf(() => {
    for (let count = 0; count < 400; count++) {
      assert.throws(() => documents.prepare(`{ a${count} # ${'x'.repeat(50_000)}`), Refusal)
    }
  })
  assert.ok(grown < 8 * 1024 * 1024, megabytes(grown))
})

/** Unused documents are evicted after this many others. */
for (const [what, others, text] of [
  ['2,000 small ones', 2000, (count: number) => `{ a${count}: __typename }`],
  ['32 MiB of large ones', 280, (count: number) => `{ __typename } # ${count} €${'x'.repeat(60_000)}`],
] as const) {
  test(`an unused document is evicted after ${what}, and not much earlier`, { skip: notInQuick }, () => {
    const documents = newDocuments()
    const use = (count: number) => {
      documents.prepare(text(count))
      return documents.prepare(text(count))
    }
    const [unused, usedAgain] = [use(0), use(1)]
    for (let count = 2; count <= others; count++) {
      use(count)
      if (count === Math.floor(others / 3)) assert.equal(documents.prepare(text(1)), usedAgain)
    }
    assert.notEqual(documents.prepare(text(0)), unused)
  })
}

test('a document is cached from its second use on, with its plans, if not a thousand others were used in between', () => {
  const documents = newDocuments()
  const plans = keptPlans(planQuery)
  const planOf = (text: string) => plans(documents.prepare(text).operation(undefined), {})
  const first = planOf('{ __typename }')
  for (let count = 0; count < 900; count++) documents.prepare(`{ a${count}: __typename }`)
  const second = planOf('{ __typename }')
  assert.notEqual(second, first)
  assert.equal(planOf('{ __typename }'), second)
  documents.prepare('{ b: __typename }')
  for (let count = 1000; count < 2100; count++) documents.prepare(`{ a${count}: __typename }`)
  assert.notEqual(planOf('{ b: __typename }'), planOf('{ b: __typename }'), 'its first use is forgotten')
  const operation = documents.prepare('{ c: __typename }').operation(undefined)
  assert.notEqual(plans(operation, {}), plans(operation, {}), 'a plan of a document that is not kept is not kept')
})

/** As the parameter of a URL. */
const partOf = (url: string, text: string) => `${url}${text}`.slice(url.length)

test('what is kept of a text keeps nothing else in memory: neither its URL, nor for a subscription the text', () => {
  const documents = newDocuments()
  const automatic = new AutomaticDocuments(documents)
  const selections: Selection[] = []
  const grown = growthOf(() => {
    for (let count = 0; count < 100; count++) {
      const name = `a_name_of_this_length_${count}`
      const text = partOf('x'.repeat(60_000), `{ ${name}: posts { id } }`)
      automatic.prepare({ query: text, operationName: undefined, variables: {}, ...persisted(sha256(text)) })
      documents.prepare(text)
      const large = documents.prepare(`{ ${name}: posts { id } } # ${'x'.repeat(60_000)}`).operation(undefined)
      selections.push(planQuery(large, {}, new PlanSize()).selection)
    }
  })
  assert.ok(grown < 3 * 1024 * 1024, megabytes(grown))
})

test('a variable must be a single value: a list or an object is refused before it is coerced', () => {
  const operation = newDocuments().prepare('query ($v: Int) { posts(limit: $v) { id } }').operation(undefined)
  for (const v of [[], [1], {}, { a: 1 }]) {
    const message = 'Variable "$v" has invalid value: it must be a single value.'
    assert.throws(() => operation.coerce({ v }), { message })
  }
  assert.equal(operation.coerce({ v: null, other: [1] }).v, null)
})

/** An operation of a document that is used for the second time, so that its plans are kept. */
function prepared(text: string): PreparedOperation {
  const documents = newDocuments()
  documents.prepare(text)
  return documents.prepare(text).operation(undefined)
}

const long = (n: number) => `a${n}`.padEnd(128, 'x')

/** Users with lists of posts. Each list has one field with a name of this length. */
function lists(users: number, posts: number, nameLength: number): string {
  const key = (n: number) => `a${n}`.padEnd(nameLength, 'x')
  return `{ ${repeat(users, n => `u${n}: user(id: 1) { ...G }`)} }
    fragment G on User { ${repeat(posts, n => `${key(n)}: posts(limit: 1) { ...F }`)} } fragment F on Post { ${key(0)}: id }`
}

describe('An operation with a too large plan', () => {
  const app = shared(startWithPost)

  const message = 'The operation is too large once its fragments are put in their places.'
  const none = (count: number) => repeat(count, n => `${long(n)}: comments(limit: 0) { id }`)

  const tooLarge: Readonly<Record<string, string>> = {
    'names within fragments within fragments': lists(28, 30, 128),
    'lists that cost little': lists(28, 30, 3),
    'lists of none, which cost nothing': `{ ${repeat(30, n => `p${n}: post(id: 1) { ...F }`)} } fragment F on Post { ${none(50)} }`,
    'what mutations show': `mutation { ${repeat(30, n => `l${n}: likePost(id: 1) { ...F }`)} } fragment F on Post { ${none(50)} }`,
  }
  for (const [what, text] of Object.entries(tooLarge)) {
    it(`is refused before it is executed: ${what}`, async () => {
      for (let time = 0; time < 2; time++) assertRefused(await query(app, text), 400, 'DOCUMENT_TOO_LARGE', message)
      assert.deepEqual(await read(app, '{ post(id: 1) { likes } }'), { post: { likes: 0 } })
    })
  }

  it('is refused as a subscription of more than 500 fields', async () => {
    using socket = await SocketClient.connect(app, app.ann)
    const subscription = (count: number) =>
      `subscription { postAdded { id author { ${repeat(6, n => `p${n}: posts(limit: 1) { ...F }`)} } } }
       fragment F on Post { ${repeat(count, n => `a${10 + n}`.padEnd(4, 'x').concat(': id'))} }`
    const refused = socket.begin(subscription(82))
    await assert.rejects(refused.listening(text => newPost(socket, text))) // because it is over
    assert.deepEqual(refused.errors, [{ message: message, extensions: { code: 'DOCUMENT_TOO_LARGE' } }])
    await socket.begin(subscription(81)).listening(text => newPost(socket, text))
  })

  it('at the limit is executed: a thousand scalars of the longest names, and 200 lists', async () => {
    const scalars = `{ ${repeat(4, n => `p${n}: posts(limit: 1) { ...F }`)} } fragment F on Post { ${repeat(250, n => `${long(n)}: id`)} }`
    dataOf(await query(app, scalars))
    dataOf(await query(app, lists(10, 20, 3)))
    assertRefused(await query(app, lists(3, 67, 3)), 400, 'DOCUMENT_TOO_LARGE', message)
  })
})

test('plans take at most 32 MiB together with their documents and statements', { skip: notInQuick }, t => {
  // As in a store: compiled statements live as long as their selection.
  const compiled = new WeakMap<Selection, string>()
  const plans = keptPlans<QueryPlan>(planQuery)
  const grown = growthOf(() => {
    for (let count = 0; count < 200; count++) {
      const { selection } = plans(prepared(`${lists(10, 20, 100)} # ${count}`), {})
      // As in an engine: a statement is a flat string.
      compiled.set(selection, Buffer.from(compile(selection, postgresDialect)).toString('latin1'))
    }
  })
  t.diagnostic(`200 plans took ${megabytes(grown)}`)
  assert.ok(grown < 40 * 1024 * 1024, megabytes(grown))
  assert.ok(plans(prepared('{ posts { id } }'), {}))
})
