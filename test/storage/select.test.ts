import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { AppError } from '../../src/core/errors.ts'
import type { SelectedField, SlotValues } from '../../src/core/selection.ts'
import { bounds } from '../../src/storage/bounds.ts'
import { answerOf } from '../../src/storage/engine.ts'
import { compile } from '../../src/storage/select/select.ts'
import { sql } from '../../src/storage/sql.ts'
import { createStore } from '../../src/storage/store.ts'
import { type Data, instants } from '../graphql/support/data.ts'
import { Stage } from '../graphql/support/stage.ts'
import { type EngineKind, engineKinds } from '../support/engines.ts'

const [noon = '', later = ''] = instants

const data: Data = {
  users: [
    { id: 1, name: 'Ann', email: 'ann@example.com', avatar: null, createdAt: noon },
    { id: 2, name: 'Bob "b"', email: 'bob@example.com', avatar: 'https://example.com/b.png', createdAt: noon },
  ],
  posts: [
    { id: 1, authorId: 1, title: 'First', content: 'One', likes: 0, publishedAt: later },
    { id: 2, authorId: 2, title: 'Second', content: '{"two":2}', likes: 2_147_483_647, publishedAt: noon },
    { id: 3, authorId: 1, title: 'Draft', content: '\u2028\n', likes: 3, publishedAt: null },
  ],
  comments: [
    { id: 1, postId: 2, authorId: 1, text: 'Early', createdAt: noon },
    { id: 2, postId: 2, authorId: 2, text: 'Late', createdAt: later },
  ],
}

for (const kind of engineKinds) {
  describe(`A selection on ${kind.name}`, { skip: kind.skip }, () => {
    it('distinguishes keys of any length, also if other names are equal', async t => {
      const { engine } = await stageWithData(t, kind)
      const long = 'k'.repeat(62)
      const names = [
        ...[long, `${long}k`, `${long}kk`, `${long}kK`, 'x'.repeat(300), 'c0', 'c1', 'C0', 'o', 'ctid'],
        ...['__proto__'],
      ]
      for (const keys of [names, names.filter(name => name.length <= 63)]) {
        const inner = keys.map(key => value('avatar', key))
        const fields = [
          ...keys.map((key, at) => value(at % 2 === 0 ? 'name' : 'id', key)),
          many('posts', 'y'.repeat(64), [1, 2], []),
        ]
        const selection = { fields: [one('user', 'user', 0, fields), one('user', 'o', 0, inner)] }
        const read = answerOf(await engine.read({ text: compile(selection, engine.dialect), values: [1, 5, 0] }))
        const user = keys.map((key, at) => [key, at % 2 === 0 ? 'Ann' : '1'])
        assert.equal(
          JSON.stringify(JSON.parse(read)),
          JSON.stringify({
            user: Object.fromEntries([...user, ['y'.repeat(64), [{}, {}]]]),
            o: Object.fromEntries(keys.map(key => [key, null])),
          }),
        )
      }
    })
  })

  describe(`An answer on ${kind.name}`, { skip: kind.skip }, () => {
    it('may have exactly two MiB, counted in bytes', async t => {
      const { engine } = await stageWithData(t, kind)
      const full = 'é'.repeat(32_768)
      const fields = [one('post', 'full', 0, contents(31)), one('post', 'rest', 1, contents(1))]
      const text = compile({ fields }, engine.dialect)
      const known = Buffer.byteLength(JSON.stringify({ full: keyed(31, full), rest: keyed(1, '') }))
      const read = async (bytes: number) => {
        await engine.write('run', [
          sql`update posts set content = ${full} where id = 1`,
          sql`update posts set content = ${'y'.repeat(bytes - known)} where id = 2`,
        ])
        return answerOf(await engine.read({ text, values: [1, 2] }))
      }
      assert.equal(Buffer.byteLength(await read(bounds.answerBytes)), bounds.answerBytes)
      await assert.rejects(read(bounds.answerBytes + 1), tooLarge)
    })

    it('is refused above two MiB, if it is large because of its characters, its rows, its keys or its nesting', async t => {
      const { engine } = await stageWithData(t, kind)
      await fill(engine, 50, '漢'.repeat(65_536))
      const large: Readonly<Record<string, readonly [SelectedField, SlotValues]>> = {
        rows: [many('posts', 'posts', [0, 1], [value('content')]), [50, 0]],
        keys: [one('post', 'post', 0, contents(50)), [1000]],
        nesting: [many('users', 'users', [0, 1], [many('posts', 'posts', [2, 3], contents(5))]), [10, 0, 10, 0]],
      }
      for (const [what, [wish, values]] of Object.entries(large)) {
        const statement = { text: compile({ fields: [wish] }, engine.dialect), values }
        await assert.rejects(engine.read(statement).then(answerOf), tooLarge, what)
      }
      const [wish] = large.rows ?? assert.fail()
      const text = compile({ fields: [wish] }, engine.dialect)
      assert.ok(answerOf(await engine.read({ text, values: [10, 0] })).length > 10 * 65_536)
    })

    it('is refused before it is built in the memory of the server or of the database', async t => {
      const { engine } = await stageWithData(t, kind)
      await fill(engine, 1000, 'x'.repeat(65_536))
      const store = createStore(engine)
      const selection = { fields: [many('posts', 'posts', [0, 1], [value('content')])] }
      await assert.rejects(store.select(selection, [140, 0]), tooLarge)
      const before = process.resourceUsage().maxRSS
      await assert.rejects(store.select(selection, [1000, 0]), tooLarge)
      const nested = [many('posts', 'posts', [2, 3], [value('content')])]
      const users = { fields: [many('users', 'users', [0, 1], nested)] }
      await assert.rejects(store.select(users, [1, 0, 900, 0]), tooLarge)
      const grown = (process.resourceUsage().maxRSS - before) * 1024
      t.diagnostic(`${Math.round(grown / 1024 / 1024)} MiB more at the most`)
      // The texts alone would take 60 MB. Other work of this process may take some memory too.
      assert.ok(grown < 30_000_000, `${grown} bytes more`)
    })
  })
}

function value(name: string, key = name): SelectedField {
  return { kind: 'value', key, name }
}

function one(name: string, key: string, id: number | undefined, fields: readonly SelectedField[]) {
  return { kind: 'one', key, name, id, fields } as const
}

function many(name: string, key: string, [limit, offset]: readonly [number, number], fields: readonly SelectedField[]) {
  return {
    kind: 'many',
    key,
    name,
    limit,
    offset,
    after: undefined,
    publishedAfter: undefined,
    publishedBefore: undefined,
    fields,
  } as const
}

function contents(count: number): readonly SelectedField[] {
  return Object.keys(keyed(count, '')).map(key => value('content', key))
}

function keyed(count: number, text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, text]))
}

async function stageWithData(t: TestContext, kind: EngineKind): Promise<Stage> {
  const stage = await Stage.open(kind)
  t.after(() => stage[Symbol.asyncDispose]())
  await stage.insert(data)
  return stage
}

/** Creates this many posts of Ann with this content, with ids from 1000 on. */
async function fill(engine: Stage['engine'], count: number, content: string): Promise<void> {
  const own = engine.dialect.name === 'postgres' ? 'overriding system value' : ''
  await engine.write('run', [
    {
      text: `with recursive numbers (number) as (
               select 0 union all select number + 1 from numbers where number + 1 < ${count}
             )
             insert into posts (id, author_id, title, content) ${own}
             select 1000 + number, 1, 'Long', cast($1 as text) from numbers`,
      values: [content],
    },
  ])
}

function tooLarge(error: unknown): boolean {
  return error instanceof AppError && error.code === 'answer-too-large'
}
