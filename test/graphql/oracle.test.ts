import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import { type Actor, anonymous } from '../../src/core/actor.ts'
import { Refusal } from '../../src/graphql/errors.ts'
import { sql } from '../../src/storage/sql.ts'
import { startTestAppOn } from '../support/app.ts'
import { type EngineKind, engineKinds, sqlite } from '../support/engines.ts'
import { inForm, runs } from '../support/form.ts'
import { get, query } from '../support/graphql.ts'
import { bodyOf, createMember } from '../support/rest.ts'
import { beginning, contentsOf, people, resetData, stateOf, withoutNow } from './support/beginning.ts'
import { type Data, type DataSize, datas, insertsOf, instants } from './support/data.ts'
import { NaiveQuery, naiveAnswer, normalised } from './support/naive.ts'
import { naiveMutation } from './support/naive-mutations.ts'
import { anyMutation, anyQuery, type Operation, type Variables } from './support/operations.ts'
import { catalogue } from './support/planting-verbs.ts'
import { actorOf, type Service, Stage, serviceOver } from './support/stage.ts'

/** Every run prints its seed. Setting it repeats that run. */
const seed = Number(process.env.DUET_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31))

/** From empty to large, so that a failure is found with little data first. */
const sizes: readonly DataSize[] = [
  { users: 0, posts: 0, comments: 0, longest: 1 },
  { users: 1, posts: 1, comments: 1, longest: 10 },
  { users: 2, posts: 3, comments: 4, longest: 100 },
  { users: 4, posts: 12, comments: 30, longest: 1000 },
  { users: 12, posts: 30, comments: 90, longest: 1000 },
  { users: 3, posts: 15, comments: 20, longest: 65_536 },
]
const runsPerSize = runs(8, 400)

for (const kind of engineKinds) {
  describe(`A query on ${kind.name}`, { skip: kind.skip }, () => {
    it('R-GQL-2, R-GQL-9, R-GQL-13, R-GQL-14, R-GQL-23, R-GQL-25: gets the same answer as from graphql-js, with the keys in the same order', async t => {
      await using stage = await Stage.open(kind)
      const tally = { compared: 0, refused: 0, longest: 0 }
      for (const [at, size] of sizes.entries()) {
        const data = someData(size, at)
        await stage.insert(data)
        await fc.assert(
          fc.asyncProperty(anyQuery(data), fc.boolean(), (operation, isKnown) =>
            compare(newService(stage), operation, data, isKnown ? (data.users[0]?.id ?? 1) : 424_242, tally),
          ),
          { numRuns: runsPerSize, seed: seed + at },
        )
      }
      t.diagnostic(`seed ${seed}: ${JSON.stringify(tally)}`)
      assert.ok(tally.refused * 5 < tally.compared, 'most operations are answered')
    })
  })

  describe(`A mutation on ${kind.name}`, { skip: kind.skip }, () => {
    it('R-GQL-20: executes all its fields in order or none, and gets the same answer as from a naive store', t =>
      mutations(kind, t))
  })
}

describe('An operation on either engine', () => {
  // Plans are cached by the names of the given variables. Joined names must not make two keys equal.
  it('gets the answer for its own variables, whatever their names are', async () => {
    await using stage = await Stage.open(sqlite)
    const service = serviceOver(stage.engine)
    await stage.insert(beginning)
    const text = `query ($a: DateTime, $b: DateTime, $asb: DateTime) {
        one: posts(publishedAfter: $a) { id }
        two: posts(publishedBefore: $b) { id }
        three: posts(publishedAfter: $asb) { id }
      }`
    const instant = instants[2]
    for (const set of [{ asb: instant }, { a: instant, b: instant }, { a: instant }, { b: instant }, { a: null }, {}]) {
      const expected = naiveAnswer(text, set, new NaiveQuery(() => beginning))
      assert.equal(normalised(await service(text, set)), expected, JSON.stringify(set))
    }
  })

  it(
    'R-GQL-3, R-GQL-15, R-GQL-16, R-GQL-17, R-GQL-18, R-GQL-19: that is a query gets the same answer over HTTP as from graphql-js, by POST and by GET',
    overHttp,
  )

  // Each variable has a default, so it is allowed where a value is required. Then null is sent.
  const nulls: Readonly<Record<string, string>> = {
    'a title': 'mutation ($v: String = "a") { createPost(title: $v, content: "b") { title } }',
    'the id of a post to like': 'mutation ($v: ID = "1") { likePost(id: $v) { id } }',
    'the id of a user': 'query ($v: ID = "1") { user(id: $v) { name } }',
    'what is to be skipped': 'query ($v: Boolean = true) { posts { id title @skip(if: $v) } }',
    'what is to be included': 'query ($v: Boolean = true) { posts { id title @include(if: $v) } }',
  }
  it('with null for a required value is refused and changes nothing', async () => {
    await using stage = await Stage.open(sqlite)
    const service = serviceOver(stage.engine)
    await stage.insert(beginning)
    const before = await stateOf(stage)
    for (const [what, text] of Object.entries(nulls)) {
      const refused = (error: unknown) => error instanceof Refusal && error.code === 'BAD_USER_INPUT'
      await assert.rejects(service(text, { v: null }, actorOf(people.ann)), refused, what)
    }
    assert.deepEqual(await stateOf(stage), before)
  })
})

function someData(size: DataSize, at = 0): Data {
  const [data] = fc.sample(datas(size), { seed: seed + at, numRuns: 1 })
  return data ?? assert.fail('no data')
}

/** Each run has new caches, without entries of another run. */
function newService({ engine }: Stage): Service {
  return serviceOver(engine, 5000)
}

/** Repeats the operation with each set of variables, because its cached parts must work for all of them. */
async function compare(
  service: Service,
  { text, variables }: Operation,
  data: Data,
  me: number,
  tally: { compared: number; refused: number; longest: number },
) {
  const root = new NaiveQuery(() => data, me)
  const answers = await Promise.all(variables.map(set => allowed(service(text, set, actorOf(me)))))
  for (const [at, answer] of answers.entries()) {
    const set = variables[at] ?? {}
    if (answer === undefined) tally.refused++
    else {
      assert.equal(normalised(answer), naiveAnswer(text, set, root), `answer to ${JSON.stringify(set)}`)
      tally.compared++
      tally.longest = Math.max(tally.longest, answer.length)
    }
  }
}

/** The answer, or nothing if the operation exceeds a limit. */
async function allowed(answer: Promise<string>): Promise<string | undefined> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof Refusal && beyondLimits.has(error.code)) return undefined
    throw error instanceof Refusal ? new Error(JSON.stringify(error.errors), { cause: error }) : error
  }
}

const beyondLimits = new Set(['COMPLEXITY_LIMIT_EXCEEDED', 'DOCUMENT_TOO_LARGE', 'RESPONSE_TOO_LARGE'])

async function overHttp(t: TestContext): Promise<void> {
  await using app = await startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0', QUERY_MAX_COMPLEXITY: '5000' })
  await using engine = app.database.open(catalogue)
  const planted = someData({ users: 4, posts: 12, comments: 30, longest: 100 })
  await engine.write('run', insertsOf(planted, 'sqlite'))
  const { token, id, name, email } = await createMember(app)
  const [row] = await engine.read(sql`select created_at from users where id = ${id}`)
  const data = { ...planted, users: [...planted.users, { id, name, email, avatar: null, createdAt: String(row?.[0]) }] }
  const root = new NaiveQuery(() => data, id)
  const sent = (text: string, variables: Variables, byPost: boolean) =>
    byPost
      ? query(app, text, { variables, token })
      : get(app, { query: text, variables: JSON.stringify(variables) }, { token })
  let compared = 0
  const property = fc.asyncProperty(anyQuery(data), fc.boolean(), async ({ text, variables: [set = {}] }, byPost) => {
    // Fastify refuses every body with this key.
    if (byPost && Object.hasOwn(set, '__proto__')) return
    const response = await sent(text, set, byPost)
    if (response.status === 400 && beyondLimits.has(JSON.parse(response.body).errors[0].extensions.code)) return
    bodyOf(response)
    assert.equal(normalised(response.body), `{"data":${naiveAnswer(text, set, root)}}`)
    compared++
  })
  await fc.assert(property, { numRuns: inForm(20, 200), seed, endOnFailure: true })
  t.diagnostic(`seed ${seed}: ${compared} answers compared`)
}

const actors: Readonly<Record<string, Actor>> = {
  ann: actorOf(people.ann),
  bob: actorOf(people.bob),
  admin: actorOf(people.admin, 'admin'),
  anonymous,
}

async function mutations(kind: EngineKind, t: TestContext): Promise<void> {
  await using stage = await Stage.open(kind)
  const actor = fc.constantFrom('ann', 'ann', 'ann', 'admin', 'bob', 'anonymous')
  const steps = fc.array(fc.tuple(actor, anyMutation(beginning, ['1001', '1002'])), { minLength: 1, maxLength: 3 })
  const seen = new Map<string, number>()
  const property = fc.asyncProperty(steps, async chosen => {
    await resetData(stage)
    const service = newService(stage)
    for (const [who, { text, variables }] of chosen) {
      for (const set of variables) {
        const before = await stateOf(stage)
        const outcome = await outcomeOf(service, text, set, actors[who] ?? anonymous)
        if (outcome === undefined) continue
        const expected = naiveMutation(text, set, actors[who] ?? anonymous, before)
        const name = 'code' in expected ? expected.code : 'done'
        seen.set(name, (seen.get(name) ?? 0) + 1)
        assert.deepEqual(outcome, 'data' in expected ? { data: expected.data } : expected)
        assert.deepEqual(contentsOf(await stateOf(stage)), contentsOf('state' in expected ? expected.state : before))
      }
    }
  })
  await fc.assert(property, { numRuns: inForm(10, 150), seed })
  t.diagnostic(`seed ${seed}: ${JSON.stringify(Object.fromEntries(seen))}`)
  assert.ok(seen.has('done') && seen.size > 2, 'some mutations succeed, and others fail for several reasons')
}

async function outcomeOf(service: Service, text: string, set: Variables, actor: Actor): Promise<object | undefined> {
  try {
    return { data: withoutNow(normalised(await service(text, set, actor))) }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    if (beyondLimits.has(error.code)) return undefined
    const [first] = error.errors
    return { code: error.code, path: first?.path }
  }
}
