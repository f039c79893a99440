import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { anonymous } from '../../src/core/actor.ts'
import { sql } from '../../src/storage/sql.ts'
import { execute } from '../faults/execute.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { createUser, send } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

for (const kind of engineKinds) {
  describe(`A user with much content, on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind))

    /** 2,500 posts with 1,500 comments of another user on the first one, and 1,500 comments on a post of the other. */
    async function writer(): Promise<{ readonly id: number; readonly other: number }> {
      const { id } = await createUser(app)
      const { id: other } = await createUser(app)
      await execute(
        app.database,
        `${posts(1, other)}; ${posts(2_500, id)}; ${comments(id, 1_500, other)}; ${comments(other, 1_500, id)}`,
      )
      return { id, other }
    }

    it('is deleted in several steps of at most a few thousand rows each', async () => {
      const { id } = await writer()
      const { engine } = app
      const counts = () =>
        engine.read(sql`select (select count(*) from posts where author_id = ${id}),
        (select count(*) from comments where author_id = ${id}),
        (select count(*) from comments join posts on posts.id = post_id where posts.author_id = ${id})`)
      const left = async () => (await counts())[0]?.map(Number) ?? []
      let before = await left()
      assert.deepEqual(before, [2_500, 1_500, 1_500])
      let steps = 0
      for (; (await engine.write('deleteUser', id, anonymous)) === 'more'; steps++) {
        const now = await left()
        assert.deepEqual(await engine.read(miscounted), [])
        for (const [at, count] of before.entries()) assert.ok(count - (now[at] ?? 0) <= 1_000, `${before} to ${now}`)
        assert.notDeepEqual(now, before)
        before = now
      }
      assert.ok(steps >= 3, `${steps} steps`)
      assert.deepEqual(await left(), [0, 0, 0])
    })

    it('is deleted completely when DELETE is answered, and each post and comment on others gets one deletion event', async () => {
      const { id, other } = await writer()
      const { engine } = app
      const [first] = await engine.read(sql`select max(id) - 2500 from posts`)
      const before = Number(first?.[0])
      assert.equal((await send(app, `DELETE /users/${id}`)).status, 204)
      assert.equal((await send(app, `GET /users/${id}`)).status, 404)
      const [row] = await engine.read(sql`select (select count(*) from posts where author_id = ${id}),
        (select count(*) from comments where author_id in (${id}, ${other})),
        (select count(*) from outbox where kind = 'post-deleted' and post_id > ${before}),
        (select count(distinct post_id) from outbox where kind = 'post-deleted' and post_id > ${before}),
        (select count(*) from outbox where kind = 'comment-deleted' and post_id = ${before}),
        (select count(distinct comment_id) from outbox where kind = 'comment-deleted' and post_id = ${before}),
        (select count(*) from posts where author_id = ${other}),
        (select count(*) from outbox where kind = 'user-revoked' and user_id = ${id})`)
      assert.deepEqual(row?.map(Number), [0, 0, 2_500, 2_500, 1_500, 1_500, 1, 1])
    })
  })
}

const miscounted = sql`select id from posts
                       where comment_count <> (select count(*) from comments where post_id = posts.id)`

const numbers = (count: number) =>
  `with recursive n(i) as (select 0 union all select i + 1 from n where i < ${count - 1})`

function posts(count: number, author: number): string {
  return `insert into posts (author_id, title, content, published_at)
    ${numbers(count)} select ${author}, 'Title', 'Content', '2026-01-01T00:00:00.000Z' from n`
}

function comments(owner: number, count: number, author: number): string {
  return `insert into comments (post_id, author_id, text, created_at) ${numbers(count)}
    select (select min(id) from posts where author_id = ${owner}), ${author}, 'Text', '2026-01-01T00:00:00.000Z' from n`
}
