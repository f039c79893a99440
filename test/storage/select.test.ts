import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { AppError } from '../../src/core/errors.ts'
import type { SelectedField, SelectedValue, Selection, SlotValues } from '../../src/core/selection.ts'
import { bounds } from '../../src/storage/bounds.ts'
import { compile } from '../../src/storage/select/select.ts'
import { sql } from '../../src/storage/sql.ts'
import { createStore } from '../../src/storage/store.ts'
import { type Data, instants } from '../graphql/support/data.ts'
import { actorOf, Stage } from '../graphql/support/stage.ts'
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

interface Example {
  readonly selection: Selection
  readonly values: SlotValues
  readonly sqlite: string
  readonly postgres: string
  readonly answer: unknown
}

const examples: Readonly<Record<string, Example>> = {
  'one by its id': {
    selection: { fields: [one('user', 'user', 0, [value('id'), value('name'), typename('User')])] },
    values: [2],
    sqlite: `
      select json_object('user', (
        select json_object('id', cast(t2.id as text), 'name', t2.name, '__typename', 'User')
        from users as t2 where t2.id = $1))`,
    postgres: `
      select ('{"user":' || coalesce((
        select (('{"id":' || '"' || t2.id || '"') || (',"name":' || to_json(t2.name)::text || ',"__typename":' || '"User"') || '}')
        from users as t2 where t2.id = $1), 'null') || '}')`,
    answer: { user: { id: '2', name: 'Bob "b"', __typename: 'User' } },
  },
  'one that is not there': {
    selection: { fields: [one('post', 'post', 0, [value('id')])] },
    values: [null],
    sqlite: `select json_object('post', (select json_object('id', cast(t2.id as text)) from posts as t2 where t2.id = $1))`,
    postgres: `
      select ('{"post":' || coalesce((
        select ('{"id":' || '"' || t2.id || '"' || '}') from posts as t2 where t2.id = $1), 'null') || '}')`,
    answer: { post: null },
  },
  'a page of many, with one and many of each': {
    selection: {
      fields: [
        many(
          'posts',
          'posts',
          [0, 1],
          [value('title'), author([value('name')]), many('comments', 'c', [2, 3], [value('text')])],
        ),
      ],
    },
    values: [2, 1, 10, 0],
    sqlite: `
      select json_object('posts', (
        select json_group_array(
          json_object(
            'title', t2.title,
            'author', json_object('name', t3.name),
            'c', (
              select json_group_array(
                json_object('text', iif(octet_length(t4.text) <= 512 or count_text(octet_length(t4.text)), t4.text, '')))
              from (select id, text from comments where post_id = t2.id order by id asc limit $3 offset $4) as t4)))
        from (
          select id, title, author_id from posts
          where id <= case when $2 = 0 then 9223372036854775807
            else (select id from posts order by id desc limit 1 offset $2) end
          order by id desc limit $1) as t2
        cross join users as t3 on t3.id = t2.author_id))`,
    postgres: `
      select ('{"posts":' || (
        select '[' || coalesce(string_agg(o.item, ','), '') || ']' from (
          select (
            ('{"title":' || to_json(t2.title)::text) ||
            (',"author":' || coalesce((
              select ('{"name":' || to_json(t3.name)::text || '}')
              from users as t3 where t3.id = t2.author_id), 'null') ||
            ',"c":' || (
              select '[' || coalesce(string_agg(o.item, ','), '') || ']' from (
                select ('{"text":' || case when octet_length(t4.text) <= 512 then to_json(t4.text)::text else counted_json(t4.text) end || '}') as item
                from (
                  select id, text, post_id from comments
                  where (post_id, id) >= (t2.id, case when $4::bigint = 0 then 0
                    else (
                      select id from comments where post_id >= t2.id and post_id <= t2.id
                      order by post_id asc, id asc limit 1 offset $4) end)
                  and post_id <= t2.id
                  order by post_id asc, id asc limit $3) as t4
                order by t4.post_id asc, t4.id asc) as o)) || '}') as item
          from (
            select id, title, author_id from posts
            where id <= case when $2::bigint = 0 then 9223372036854775807
              else (select id from posts order by id desc limit 1 offset $2) end
            order by id desc limit $1) as t2
          order by t2.id desc) as o) || '}')`,
    answer: {
      posts: [
        { title: 'Second', author: { name: 'Bob "b"' }, c: [{ text: 'Early' }, { text: 'Late' }] },
        { title: 'First', author: { name: 'Ann' }, c: [] },
      ],
    },
  },
  'those published in between, the latest first': {
    selection: {
      fields: [{ ...many('posts', 'posts', [0, 1], [value('id')]), publishedAfter: 2, publishedBefore: 3 }],
    },
    values: [10, 0, '2026-01-31T11:59:59.999Z', '2026-02-01T00:00:00.000Z'],
    sqlite: `
      select json_object('posts', (
        select json_group_array(json_object('id', cast(t2.id as text)))
        from (
          select id, published_at from posts where published_at > $3 and published_at < $4
          order by published_at desc, id desc limit $1 offset $2) as t2))`,
    postgres: `
      select ('{"posts":' || (
        select '[' || coalesce(string_agg(o.item, ','), '') || ']' from (
          select ('{"id":' || '"' || t2.id || '"' || '}') as item
          from (
            with first as materialized (
              select published_at, id from posts where published_at > $3 and published_at < $4
              order by published_at desc, id desc limit 1 offset $2)
            select id, published_at from posts
            where published_at > $3 and published_at < $4
            and (published_at, id) <= ((select published_at from first), (select id from first))
            order by published_at desc, id desc limit $1) as t2
          order by t2.published_at desc, t2.id desc) as o) || '}')`,
    answer: { posts: [{ id: '1' }, { id: '2' }] },
  },
  'one author wished for twice': {
    selection: { fields: [one('post', 'post', 0, [author([value('id')], 'a'), author([value('name')], 'b')])] },
    values: [3],
    sqlite: `
      select json_object('post', (
        select json_object('a', json_object('id', cast(t3.id as text)), 'b', json_object('name', t3.name))
        from posts as t2 cross join users as t3 on t3.id = t2.author_id where t2.id = $1))`,
    postgres: `
      select ('{"post":' || coalesce((
        select (
          '{"a":' || coalesce((
            select ('{"id":' || '"' || t3.id || '"' || '}') from users as t3 where t3.id = t2.author_id), 'null') ||
          ',"b":' || coalesce((
            select ('{"name":' || to_json(t4.name)::text || '}') from users as t4 where t4.id = t2.author_id), 'null') || '}')
        from posts as t2 where t2.id = $1), 'null') || '}')`,
    answer: { post: { a: { id: '1' }, b: { name: 'Ann' } } },
  },
  'JSON that is there already, a list of none, and objects of nothing': {
    selection: {
      fields: [
        { kind: 'json', key: 'given', slot: 0 },
        { kind: 'empty', key: 'none' },
        one('user', 'user', 1, []),
        many('users', 'users', [2, 3], []),
      ],
    },
    values: ['{"b":[1,"\\u2028"],"a":null}', 1, 10, 0],
    sqlite: `
      select json_object(
        'given', json($1),
        'none', json_array(),
        'user', (select json_object() from users as t2 where t2.id = $2),
        'users', (
          select json_group_array(json_object())
          from (
            select id from users
            where id >= case when $4 = 0 then 0 else (select id from users order by id asc limit 1 offset $4) end
            order by id asc limit $3) as t3))`,
    postgres: `
      select (
        ('{"given":' || $1::text || ',"none":' || '[]') ||
        (',"user":' || coalesce((select ('{' || '}') from users as t2 where t2.id = $2), 'null') ||
        ',"users":' || (
          select '[' || coalesce(string_agg(o.item, ','), '') || ']' from (
            select ('{' || '}') as item from (
              select id from users
              where id >= case when $4::bigint = 0 then 0 else (select id from users order by id asc limit 1 offset $4) end
              order by id asc limit $3) as t3
            order by t3.id asc) as o)) || '}')`,
    answer: { given: { b: [1, '\u2028'], a: null }, none: [], user: {}, users: [{}, {}] },
  },
}

for (const kind of engineKinds) {
  describe(`A selection on ${kind.name}`, { skip: kind.skip }, () => {
    it('becomes one statement that returns JSON with its keys in order', async t => {
      const { engine } = await stageWithData(t, kind)
      for (const [what, { selection, values, answer, ...expected }] of Object.entries(examples)) {
        const text = compile(selection, engine.dialect)
        assert.ok(spaced(text).includes(spaced(expected[kind.kind]).replace(/^select /, '')), what)
        const read = await engine.readText({ text, values })
        assert.equal(JSON.stringify(JSON.parse(read)), JSON.stringify(answer), what)
      }
    })

    it('may have any number of keys, in order, with values of every kind', async t => {
      const { engine } = await stageWithData(t, kind)
      for (const count of [399, 400, 401, 800, 801, 1200]) {
        const kinds = [value('title'), value('likes'), value('publishedAt'), value('content'), author([value('name')])]
        const fields = Array.from({ length: count }, (_, at): SelectedField => {
          const wish = kinds[at % kinds.length] ?? value('id')
          return { ...wish, key: `k${at}` }
        })
        const selection = { fields: [many('posts', 'posts', [0, 1], fields)] }
        const read = await engine.readText({ text: compile(selection, engine.dialect), values: [1, 0] })
        const values = ['Draft', 3, null, '\u2028\n', { name: 'Ann' }]
        const expected = Object.fromEntries(fields.map(({ key }, at) => [key, values[at % values.length]]))
        assert.equal(JSON.stringify(JSON.parse(read)), JSON.stringify({ posts: [expected] }), `${count} keys`)
      }
    })

    it('distinguishes keys of any length, also if other names are equal', async t => {
      const { engine } = await stageWithData(t, kind)
      const long = 'k'.repeat(62)
      const names = [
        long,
        `${long}k`,
        `${long}kk`,
        `${long}kK`,
        'x'.repeat(300),
        'c0',
        'c1',
        'C0',
        'o',
        'ctid',
        '__proto__',
      ]
      for (const keys of [names, names.filter(name => name.length <= 63)]) {
        const inner = keys.map(key => value('avatar', key))
        const fields = [
          ...keys.map((key, at) => value(at % 2 === 0 ? 'name' : 'id', key)),
          many('posts', 'y'.repeat(64), [1, 2], []),
        ]
        const selection = { fields: [one('user', 'user', 0, fields), one('user', 'o', 0, inner)] }
        const read = await engine.readText({ text: compile(selection, engine.dialect), values: [1, 5, 0] })
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
      const full = 'x'.repeat(65_536)
      const fields = [one('post', 'full', 0, contents(31)), one('post', 'rest', 1, contents(1))]
      const text = compile({ fields }, engine.dialect)
      const known = JSON.stringify({ full: keyed(31, full), rest: keyed(1, '') }).length
      const read = async (bytes: number) => {
        await engine.write('run', [
          sql`update posts set content = ${full} where id = 1`,
          sql`update posts set content = ${'y'.repeat(bytes - known)} where id = 2`,
        ])
        return engine.readText({ text, values: [1, 2] })
      }
      assert.equal((await read(bounds.answerBytes)).length, bounds.answerBytes)
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
        await assert.rejects(engine.readText(statement), tooLarge, what)
      }
      const [wish] = large.rows ?? assert.fail()
      const text = compile({ fields: [wish] }, engine.dialect)
      assert.ok((await engine.readText({ text, values: [10, 0] })).length > 10 * 65_536)
    })

    it('of a change is refused too, and then nothing is changed', async t => {
      const { engine } = await stageWithData(t, kind)
      await fill(engine, 50, '漢'.repeat(65_536))
      const store = createStore(engine)
      const inner = [value('likes'), author([many('posts', 'posts', [1, 2], [value('content')])])]
      const show = (limit: number) => ({
        selection: { fields: [one('post', 'liked', 0, inner)] },
        values: [null, limit, 0],
        id: 0,
      })
      const like = (limit: number) =>
        store.changePosts(actorOf(1), [{ kind: 'like post', id: 1000, show: show(limit) }])
      await assert.rejects(like(50), tooLarge)
      assert.deepEqual(await engine.read(sql`select likes from posts where id = 1000`), [[0]])
      const [shown] = (await like(1)) as readonly string[]
      assert.match(shown ?? '', /^\{"liked":\{"likes":1,/)
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

function value(name: string, key = name): SelectedValue {
  return { kind: 'value', key, name }
}

function typename(text: string): SelectedField {
  return { kind: 'text', key: '__typename', text }
}

function one(name: string, key: string, id: number | undefined, fields: readonly SelectedField[]) {
  return { kind: 'one', key, name, id, fields } as const
}

function author(fields: readonly SelectedField[], key = 'author') {
  return one('author', key, undefined, fields)
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

/** A statement without its layout. */
function spaced(text: string): string {
  return text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\( | (?=\))/g, part => part.trim())
    .trim()
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
