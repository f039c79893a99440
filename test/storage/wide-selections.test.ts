import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { SelectedField, Selection } from '../../src/core/selection.ts'
import { planBounds } from '../../src/graphql/language/plans.ts'
import { createStore } from '../../src/storage/store.ts'
import { instants } from '../graphql/support/data.ts'
import { actorOf, Stage } from '../graphql/support/stage.ts'
import { startTestAppOn } from '../support/app.ts'
import { type EngineKind, engineKinds } from '../support/engines.ts'
import { dataOf, query } from '../support/graphql.ts'

for (const kind of engineKinds) {
  describe(`A wide selection on ${kind.name}`, { skip: kind.skip }, () => {
    it('of long texts of one object is answered up to the number of fields that its cost allows', async () => {
      await using stage = await stageWithData(kind)
      const store = createStore(stage.engine)
      const answered = async (width: number, keyLength: number) => {
        const keys = Array.from({ length: width }, (_, at) => `k${at}`.padEnd(keyLength, '_'))
        const selection = { fields: [one('post', 0, keys.map(contentAs))] }
        const expected = JSON.stringify({ post: Object.fromEntries(keys.map(key => [key, 'Words'])) })
        assert.equal(compact(await store.select(selection, [1])), expected, `${width} keys of ${keyLength} characters`)
        const show = { selection, values: [null], id: 0 }
        const [shown] = (await store.changePosts(actorOf(1), [
          { kind: 'like a post', id: 1, show },
        ])) as readonly string[]
        assert.equal(compact(shown ?? ''), expected, `${width} keys of ${keyLength} characters, shown`)
      }
      for (const width of [1, 330, 499]) for (const length of [5, 128]) await answered(width, length)
    })

    it('of objects and lists with long texts is answered up to the allowed number', async () => {
      await using stage = await stageWithData(kind)
      const store = createStore(stage.engine)
      const list: SelectedField = {
        ...{
          kind: 'many',
          key: 'posts',
          name: 'posts',
          limit: 1,
          offset: 2,
          after: undefined,
          publishedAfter: undefined,
          publishedBefore: undefined,
        },
        fields: [contentAs('content')],
      }
      const lists = Array.from({ length: planBounds.lists }, (_, at) => ({ ...list, key: `list${at}` }))
      const author = (key: string): SelectedField => ({ ...one('author', undefined, lists.slice(0, 5)), key })
      const shapes: Readonly<Record<string, Selection>> = {
        'lists of one object': { fields: [one('user', 0, lists)] },
        'lists at the top, beside others': { fields: [...lists.slice(1), one('user', 0, [list])] },
        'objects at the top': {
          fields: times(166, at => ({ ...one('post', 0, [contentAs('content')]), key: `k${at}` })),
        },
        'objects of an object': {
          fields: [
            one(
              'post',
              0,
              times(20, at => author(`k${at}`)),
            ),
          ],
        },
      }
      const words: Readonly<Record<string, number>> = { 'objects at the top': 166, 'objects of an object': 100 }
      for (const [what, selection] of Object.entries(shapes)) {
        const answer = JSON.parse(await store.select(selection, what === 'objects at the top' ? [1] : [1, 500, 0]))
        assert.equal(Object.keys(answer).length, selection.fields.length, what)
        assert.equal(JSON.stringify(answer).match(/"Words"/g)?.length, words[what] ?? planBounds.lists, what)
      }
    })

    it('of more lists than allowed is refused in a query and in a mutation, and then nothing is changed', async () => {
      await using app = await startTestAppOn(kind, { DEMO_DATA: 'true' })
      const lists = (count: number) => Array.from({ length: count }, (_, at) => `x${at}:posts(limit:1){id}`).join(' ')
      const users = (more: string) =>
        `{a:user(id:1){...F} b:user(id:2){...F} c:user(id:1){...F} d:user(id:2){...F} ${more}} fragment F on User {${lists(planBounds.lists / 4)}}`
      const liked = `mutation {a:likePost(id:1){author{...F}} b:likePost(id:1){author{...F}} c:likePost(id:1){author{...F}} d:likePost(id:1){author{...F}}
        e:likePost(id:1){author{...G}}} fragment F on User {${lists(planBounds.lists / 4)}} fragment G on User {posts(limit:1){id}}`
      dataOf(await query(app, users('')))
      const likes = async () => dataOf(await query(app, '{post(id:1){likes}}'))
      const before = await likes()
      for (const operation of [users('posts(limit:1){id}'), liked]) {
        const { status, body } = await query(app, operation)
        assert.equal(status, 400)
        assert.equal(JSON.parse(body).errors[0].extensions.code, 'DOCUMENT_TOO_LARGE')
      }
      assert.deepEqual(await likes(), before)
    })
  })
}

function contentAs(key: string): SelectedField {
  return { kind: 'value', key, name: 'content' }
}

function one(name: string, id: number | undefined, fields: readonly SelectedField[]): SelectedField {
  return { kind: 'one', key: name, name, id, fields }
}

function times<Item>(count: number, make: (at: number) => Item): Item[] {
  return Array.from({ length: count }, (_, at) => make(at))
}

function compact(json: string): string {
  return JSON.stringify(JSON.parse(json))
}

async function stageWithData(kind: EngineKind): Promise<Stage> {
  const stage = await Stage.open(kind)
  const [at = ''] = instants
  await stage.insert({
    users: [{ id: 1, name: 'Ann', email: 'ann@example.com', avatar: null, createdAt: at }],
    posts: [{ id: 1, authorId: 1, title: 'First', content: 'Words', likes: 0, publishedAt: at }],
    comments: [],
  })
  return stage
}
