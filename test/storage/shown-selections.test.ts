import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AppError } from '../../src/core/errors.ts'
import type { Change, Show } from '../../src/core/store.ts'
import { sql } from '../../src/storage/sql.ts'
import { createStore } from '../../src/storage/store.ts'
import { instants } from '../graphql/support/data.ts'
import { actorOf, Stage } from '../graphql/support/stage.ts'
import { type EngineKind, engineKinds } from '../support/engines.ts'

for (const kind of engineKinds) {
  describe(`The result of a mutation on ${kind.name}`, { skip: kind.skip }, () => {
    it('has at most two MiB for all fields together, and above that nothing is changed', async () => {
      await using stage = await stageWithData(kind)
      const store = createStore(stage.engine)
      const changes = (count: number) => Array.from({ length: count }, () => like(30))
      assert.equal(((await store.changePosts(actorOf(1), changes(2))) as readonly string[]).length, 2)
      await assert.rejects(
        store.changePosts(actorOf(1), changes(3)),
        error => error instanceof AppError && error.code === 'answer-too-large',
      )
      assert.deepEqual(await stage.engine.read(sql`select likes from posts where id = 1`), [[2]])
    })

    it('is read after its own field and before the next one, and is not affected by a later deletion', async () => {
      await using stage = await stageWithData(kind)
      const store = createStore(stage.engine)
      const selection = { fields: [{ kind: 'value', key: 'likes', name: 'likes' } as const] }
      const show: Show = {
        selection: { fields: [{ kind: 'one', key: 'post', name: 'post', id: 0, fields: selection.fields }] },
        values: [null],
        id: 0,
      }
      const outcome = await store.changePosts(actorOf(1), [
        { kind: 'like a post', id: 1, show },
        { kind: 'like a post', id: 1, show },
        { kind: 'delete a post', id: 1, reach: 'everyone' },
      ])
      assert.deepEqual(outcome, [answerOf({ likes: 1 }), answerOf({ likes: 2 }), true])
    })
  })
}

function answerOf(post: object): string {
  return JSON.stringify({ post })
}

/** Likes the first post and selects this many posts of its author, 30 KB each. */
function like(posts: number): Change {
  const content = { kind: 'value', key: 'content', name: 'content' } as const
  const list = {
    kind: 'many',
    key: 'posts',
    name: 'posts',
    after: undefined,
    publishedAfter: undefined,
    publishedBefore: undefined,
  } as const
  const author = { kind: 'one', key: 'author', name: 'author', id: undefined } as const
  const inner = [{ ...author, fields: [{ ...list, limit: 1, offset: 2, fields: [content] }] }]
  const selection = { fields: [{ kind: 'one', key: 'post', name: 'post', id: 0, fields: inner } as const] }
  return { kind: 'like a post', id: 1, show: { selection, values: [null, posts, 0], id: 0 } }
}

async function stageWithData(kind: EngineKind): Promise<Stage> {
  const stage = await Stage.open(kind)
  const [at = ''] = instants
  await stage.insert({
    users: [{ id: 1, name: 'Ann', email: 'ann@example.com', avatar: null, createdAt: at }],
    posts: Array.from({ length: 100 }, (_, index) => ({
      ...{ id: index + 1, authorId: 1, title: 'Title', likes: 0, publishedAt: at },
      content: 'é'.repeat(15_000),
    })),
    comments: [],
  })
  return stage
}
