import assert from 'node:assert/strict'
import { type Statement, sql, type Value } from '../../../src/storage/sql.ts'
import type { TestDatabase } from '../../support/engines.ts'
import { type Data, insertsOf, instants } from './data.ts'
import { type NaiveState, now } from './naive-mutations.ts'
import type { Stage } from './stage.ts'

export const people: Readonly<Record<'ann' | 'bob' | 'admin', number>> = { ann: 1, bob: 2, admin: 3 }

/** The data before any changes. */
export const beginning: Data = {
  users: Object.entries(people).map(([name, id]) => ({
    id,
    name,
    email: `${name}@example.com`,
    avatar: null,
    createdAt: instants[0] ?? '',
  })),
  posts: [1, 2, 3, 4].map(id => ({
    id,
    authorId: id % 2 === 1 ? people.ann : people.bob,
    title: `Post ${id}`,
    content: 'Words',
    likes: id === 4 ? 2_147_483_647 : id,
    publishedAt: (id < 4 && instants[id]) || null,
    updatedAt: id === 2 ? (instants[2] ?? '') : null,
  })),
  comments: [1, 2, 3, 4, 5].map(id => ({
    id,
    postId: (id % 3) + 1,
    authorId: id === 4 ? people.ann : people.bob,
    text: `Comment ${id}`,
    createdAt: instants[id] ?? '',
    updatedAt: null,
  })),
}

/** Restores the initial data, without events and with fixed ids for the next rows. */
export async function resetData({ engine, database: { kind } }: Stage): Promise<void> {
  await engine.write('run', [...insertsOf(beginning, kind), sql`delete from outbox`, numbering[kind]])
}

/** Sets the ids of the next rows. */
export const numbering: Readonly<Record<TestDatabase['kind'], Statement>> = {
  sqlite: sql`update sqlite_sequence set seq = 1000 where name in ('posts', 'comments')`,
  postgres: sql`select setval('posts_id_seq', 1000), setval('comments_id_seq', 1000)`,
}

/** The current data. */
export async function stateOf({ engine, database }: Stage): Promise<NaiveState> {
  const [posts = [], comments = [], events = [], next = [], miscounted = []] = await engine.write('run', [
    sql`select id, author_id, title, content, likes, published_at, updated_at from posts order by id`,
    sql`select id, post_id, author_id, text, created_at, updated_at from comments order by id`,
    sql`select kind, post_id, comment_id from outbox order by id`,
    nextIds[database.kind],
    sql`select id from posts where comment_count <> (select count(*) from comments where post_id = posts.id)`,
  ])
  assert.deepEqual(miscounted, [], 'posts whose number of comments is wrong')
  return {
    users: beginning.users,
    posts: posts.map(([id, authorId, title, content, likes, publishedAt, updatedAt]) => ({
      id: Number(id),
      authorId: Number(authorId),
      title: String(title),
      content: String(content),
      likes: Number(likes),
      publishedAt: instantIn(publishedAt),
      updatedAt: instantIn(updatedAt),
    })),
    comments: comments.map(([id, postId, authorId, text, createdAt, updatedAt]) => ({
      id: Number(id),
      postId: Number(postId),
      authorId: Number(authorId),
      text: String(text),
      createdAt: String(instantIn(createdAt)),
      updatedAt: instantIn(updatedAt),
    })),
    events: events.map(event => event.filter(part => part !== null).join(' ')),
    nextPostId: Number(next[0]?.[0]),
    nextCommentId: Number(next[0]?.[1]),
  }
}

function instantIn(value: Value | undefined): string | null {
  if (value === null || value === undefined) return null
  return instants.includes(String(value)) ? String(value) : now
}

const nextIds: Readonly<Record<TestDatabase['kind'], Statement>> = {
  sqlite: sql`select (select seq from sqlite_sequence where name = 'posts') + 1,
                     (select seq from sqlite_sequence where name = 'comments') + 1`,
  postgres: sql`select p.last_value + case when p.is_called then 1 else 0 end,
                       c.last_value + case when c.is_called then 1 else 0 end
                from posts_id_seq as p, comments_id_seq as c`,
}

/** The rows without the next ids, because PostgreSQL skips some ids when it rolls back a change. */
export function contentsOf({ users, posts, comments, events }: NaiveState): Data & Pick<NaiveState, 'events'> {
  const byId = (one: { id: number }, other: { id: number }) => one.id - other.id
  return { users, posts: posts.toSorted(byId), comments: comments.toSorted(byId), events }
}

/** Replaces the instants of the test run, which are not known in advance. */
export function withoutNow(text: string): string {
  return text.replaceAll(/"\d{4}-\d\d-\d\dT[\d:.]{12}Z"/g, instant =>
    instants.includes(instant.slice(1, -1)) ? instant : JSON.stringify(now),
  )
}
