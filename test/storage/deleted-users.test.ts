import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { anonymous } from '../../src/core/actor.ts'
import { sql } from '../../src/storage/sql.ts'
import { execute } from '../faults/execute.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefused, query, read } from '../support/graphql.ts'
import { createMember, createUser, send } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

for (const kind of engineKinds) {
  describe(`A user with much content, on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind))

    /** 1,200 posts with 1,200 comments of another user on the first one, and 1,200 comments on a post of the other. */
    async function writer(): Promise<{ readonly id: number; readonly other: number }> {
      const { id } = await createUser(app)
      const { id: other } = await createUser(app)
      await execute(
        app.database,
        `${posts(1, other)}; ${posts(1_200, id)}; ${comments(id, 1_200, other)}; ${comments(other, 1_200, id)}`,
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
      assert.deepEqual(before, [1_200, 1_200, 1_200])
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
      const [first] = await engine.read(sql`select max(id) - 1200 from posts`)
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
      assert.deepEqual(row?.map(Number), [0, 0, 1_200, 1_200, 1_200, 1_200, 1, 1])
    })
  })

  describe(`A post with more than 10,000 comments, on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind, { RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }))

    /** Two posts. The first one has so many comments. */
    async function author(count: number) {
      const { id, token } = await createMember(app)
      await execute(app.database, `${posts(2, id)}; ${comments(id, count, id)}`)
      const [ids = []] = await app.engine.read(sql`select min(id), max(id) from posts where author_id = ${id}`)
      const [post = 0, other = 0] = ids.map(Number)
      const left = async () => {
        const [row] = await app.engine.read(sql`select (select comment_count from posts where id = ${post}),
          (select count(*) from comments where post_id = ${post}),
          (select count(*) from outbox where kind = 'post-deleted' and post_id = ${post})`)
        return row?.map(count => (count === null ? 'none' : Number(count)))
      }
      return { token, post, other, left }
    }

    it('is deleted in steps of 10,000 comments, and its event is told at the end', async () => {
      const { post, left } = await author(20_001)
      const change = { kind: 'delete a post', id: post, reach: 'everyone' } as const
      for (const rest of [10_001, 1]) {
        assert.equal(await app.engine.write('changePosts', anonymous, [change]), 'more')
        assert.deepEqual(await left(), [rest, rest, 0])
      }
      assert.deepEqual(await app.engine.write('changePosts', anonymous, [change]), [true])
      assert.deepEqual(await left(), ['none', 0, 1])
    })

    it('is gone when its deletion is answered, and is not deleted together with other changes', async () => {
      const { token, post, other, left } = await author(10_001)
      const both = `mutation { one: deletePost(id: ${other}) two: deletePost(id: ${post}) }`
      assertRefused(await query(app, both, { token }), 400, 'BAD_USER_INPUT')
      assert.deepEqual(await left(), [10_001, 10_001, 0])
      const alone = (id: number) => read<{ deletePost: boolean }>(app, `mutation { deletePost(id: ${id}) }`, { token })
      assert.deepEqual([await alone(post), await alone(other)], [{ deletePost: true }, { deletePost: true }])
      assert.deepEqual(await left(), ['none', 0, 1])
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
