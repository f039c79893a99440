import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import type { Statement } from '../../src/storage/sql.ts'
import { type EngineKind, engineKinds } from '../support/engines.ts'
import { runs } from '../support/form.ts'
import { beginning } from './support/beginning.ts'
import { anyQuery } from './support/operations.ts'
import { actorOf, type Service, Stage, serviceOver } from './support/stage.ts'

const numRuns = runs(25, 2000)

for (const kind of engineKinds) describe(`An operation on ${kind.name}`, { skip: kind.skip }, () => statements(kind))

function statements(kind: EngineKind): void {
  it('runs one statement if it is a query, at any nesting and at every request, with no text of it but the keys', async t => {
    const { service, seen } = await watched(t, kind)
    let asked = 0
    const property = fc.asyncProperty(anyQuery(beginning), async ({ text, variables }) => {
      const names = new Set(text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').match(/\w+/g))
      for (const set of variables) {
        seen.clear()
        await service(text, set, actorOf(1))
        assert.ok(seen.reads === seen.texts.length && seen.reads <= 1 && seen.writes === 0, `${seen.reads} reads`)
        for (const statement of seen.texts) assertNoValue(statement, names)
        asked += seen.reads
      }
    })
    await fc.assert(property, { numRuns })
    t.diagnostic(`${asked} statements`)
    assert.ok(asked > numRuns)
  })

  const counts: Readonly<Record<string, number>> = {
    '{ me { id } user(id: 2) { id } post(id: 9) { id } posts { id } users { id } }': 1,
    '{ users { posts { comments { author { posts { title } } } } } }': 1,
    '{ __schema { queryType { name } } me { id } }': 1,
    '{ __typename __schema { types { name } } }': 0,
    '{ posts(limit: 0) { id } users(limit: 0) { posts { id } } }': 0,
    '{ posts @skip(if: true) { id } __typename }': 0,
  }
  it('runs only the statements that it needs, and all its changes with their results in one transaction', async t => {
    const { service, seen } = await watched(t, kind)
    for (const [text, reads] of Object.entries(counts)) {
      seen.clear()
      await service(text, {}, actorOf(1))
      assert.deepEqual([seen.reads, seen.writes], [reads, 0], text)
    }
    seen.clear()
    const text = `mutation {
      createPost(title: "a", content: "b") { author { posts { comments { author { name } } } } }
      likePost(id: 2) { likes } addComment(postId: 2, text: "c") { id } deletePost(id: 3) }`
    await service(text, {}, actorOf(1))
    assert.deepEqual([seen.reads, seen.writes], [0, 1])
  })
}

/**
 * Checks that quoted names are keys of the document or known names, and that the only numbers are those of slots and
 * rows.
 */
function assertNoValue(statement: string, names: ReadonlySet<string>): void {
  const ours = new Set(['Query', 'User', 'Post', 'Comment', 'null', 'duetleft', '2097152', '19700101T000000000Z', ''])
  const rest = statement.replaceAll(/'[^']*'|"[^"]*"/g, quoted => {
    const word = quoted.replaceAll(/[^\w]/g, '')
    assert.ok(ours.has(word) || names.has(word) || /^c\d+$/.test(word), `${quoted} in ${statement}`)
    return ''
  })
  // Some constants are allowed: sizes of answers and of texts that are not counted, and the lowest and highest id in statements that skip rows.
  const plain = rest.replaceAll(
    /, 0\)|> 131072, |<= (?:2097152|512)|then 2097152 else 0 end|offset 0\) as whole|= 0 then (?:0|9223372036854775807)\s+else|\blimit 1 offset/g,
    '',
  )
  assert.doesNotMatch(plain.replaceAll(/(?<!\w)(?:\$|t|o\.c)\d+/g, ''), /\d/)
}

/** The calls to an engine: how many, and the texts of its compiled statements. */
class Seen {
  reads = 0
  writes = 0
  texts: string[] = []

  clear(): void {
    Object.assign(this, new Seen())
  }
}

/** A service, and a record of the calls to its engine. */
async function watched(t: TestContext, kind: EngineKind): Promise<{ service: Service; seen: Seen }> {
  const seen = new Seen()
  const observer = { read: () => seen.reads++, write: () => seen.writes++ }
  const stage = await Stage.open(kind, { observer })
  t.after(() => stage[Symbol.asyncDispose]())
  await stage.insert(beginning)
  const { engine } = stage
  const read = engine.read.bind(engine)
  t.mock.method(engine, 'read', (statement: Statement) => {
    seen.texts.push(statement.text)
    return read(statement)
  })
  seen.clear()
  return { service: serviceOver(engine, 1_000_000), seen }
}
