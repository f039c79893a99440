import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type pg from 'pg'
import { anonymous } from '../../src/core/actor.ts'
import { AppError } from '../../src/core/errors.ts'
import type { CompiledChange } from '../../src/storage/entities/posts.ts'
import { sql } from '../../src/storage/sql.ts'
import type { Steps } from '../../src/storage/verb.ts'
import { numbering } from '../graphql/support/beginning.ts'
import { type Data, insertsOf } from '../graphql/support/data.ts'
import { verbs } from '../graphql/support/planting-verbs.ts'
import { actorOf, Stage } from '../graphql/support/stage.ts'
import { postgres } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { waitUntil } from '../support/wait.ts'
import { connectTo, isWaiting, Transaction } from './transaction.ts'

const at = '2026-01-31T12:00:00.000Z'
const users = [1, 2, 3, 4]
const posts = [1, 2, 3, 4, 5, 6]

/** Every user has posts, and comments on all posts. */
const data: Data = {
  users: users.map(id => ({ id, name: 'Name', email: 'a@example.com', avatar: null, createdAt: at })),
  posts: posts.map(id => ({ id, authorId: (id % 4) + 1, title: 'T', content: 'C', likes: 0, publishedAt: at })),
  comments: Array.from({ length: 48 }, (_, n) => ({
    ...{ id: n + 1, postId: (n % 6) + 1, authorId: ((n * 7) % 4) + 1, text: 'Text', createdAt: at },
  })),
}

const show = { text: 'select cast($1 as text)', values: [null], id: 0 } as const
const reach = 'everyone'
const actor = fc.constantFrom(...users).map(id => actorOf(id))
const postId = fc.constantFrom(...posts)
const addComment = (postId: number): CompiledChange => ({ kind: 'add a comment', postId, text: 'New', show })
const deleteComment = (commentId: number): CompiledChange => ({ kind: 'delete a comment', commentId, reach })
const updateComment = (commentId: number): CompiledChange => {
  return { kind: 'update a comment', commentId, text: 'X', ifUpdatedAt: null, reach, show }
}
const likePost = (id: number): CompiledChange => ({ kind: 'like a post', id, show })
const updatePost = (id: number): CompiledChange => {
  return { kind: 'update a post', id, title: 'U', content: null, ifUpdatedAt: null, reach, show }
}
const createPost: CompiledChange = { kind: 'create a post', title: 'T', content: 'C', show }
const deletePost = (id: number): CompiledChange => ({ kind: 'delete a post', id, reach })

const commentId = fc.integer({ min: 1, max: 48 })
const change = fc.oneof(
  { weight: 4, arbitrary: postId.map(addComment) },
  { weight: 4, arbitrary: commentId.map(deleteComment) },
  { weight: 2, arbitrary: commentId.map(updateComment) },
  { weight: 1, arbitrary: postId.map(likePost) },
  { weight: 1, arbitrary: postId.map(updatePost) },
  { weight: 1, arbitrary: fc.constant(createPost) },
)
/** A change of the same few rows, which many clients make concurrently. */
const hotChange = fc.constantFrom(addComment(1), addComment(1), addComment(1), ...[1, 7, 13].map(deleteComment))
const changing = (changes: fc.Arbitrary<readonly CompiledChange[]>) =>
  fc.tuple(actor, changes).map(([actor, changes]) => verbs.changePosts(actor, changes))
/** One transaction: several changes of an actor, or the deletion of a user. */
const anyWork: fc.Arbitrary<Steps<unknown>> = fc.oneof(
  { weight: 20, arbitrary: changing(hotChange.map(each => [each])) },
  { weight: 30, arbitrary: changing(fc.array(change, { minLength: 1, maxLength: 4 })) },
  { weight: 1, arbitrary: changing(postId.map(id => [deletePost(id)])) },
  { weight: 1, arbitrary: fc.constantFrom(...users).map(id => verbs.deleteUser(id, anonymous)) },
)

const miscounted = sql`select id, comment_count, (select count(*) from comments where post_id = posts.id) from posts
                       where comment_count <> (select count(*) from comments where post_id = posts.id)`

/** A change of an absent row, or by a user that was deleted meanwhile, is refused; other errors are thrown. */
async function outcomeOf(work: () => Promise<unknown>): Promise<'some' | 'refused'> {
  try {
    const outcome = await work()
    return typeof outcome === 'object' && outcome !== null && 'refused' in outcome ? 'refused' : 'some'
  } catch (error) {
    if (error instanceof AppError && error.code === 'not-found') return 'refused'
    throw error
  }
}

test('transactions on PostgreSQL that change the same posts, comments and users never deadlock', {
  skip: postgres.skip,
}, async t => {
  await using stage = await Stage.open(postgres)
  await using parts = new AsyncDisposableStack()
  const done = { some: 0, refused: 0 }
  const clients = await Promise.all(Array.from({ length: 4 }, () => connected(parts, stage.database.location)))
  for (let round = 0; round < inForm(3, 60); round++) {
    await stage.engine.write('run', [...insertsOf(data, 'postgres'), numbering.postgres])
    const work = clients.map(async client => {
      for (const each of fc.sample(anyWork, 12)) done[await outcomeOf(() => Transaction.run(client, each))]++
    })
    await Promise.all(work) // PostgreSQL would end a deadlock with an error
    assert.deepEqual(await stage.engine.read(miscounted), [])
  }
  t.diagnostic(JSON.stringify(done))
})

test('a mutation on PostgreSQL that changes the same rows several times does not deadlock with the deletion of their author, after any of its statements', {
  skip: postgres.skip,
}, async () => {
  await using stage = await Stage.open(postgres)
  await using parts = new AsyncDisposableStack()
  const connect = () => connected(parts, stage.database.location)
  const [changing, deleting, watching] = [await connect(), await connect(), await connect()]
  let isOver = false
  for (let statements = 1; !isOver; statements++) {
    await stage.engine.write('run', [...insertsOf(data, 'postgres'), numbering.postgres])
    // Post 3 belongs to user 4, comment 1 to user 1.
    const changes = [likePost(3), updateComment(1), updateComment(1), likePost(3)]
    const mutation = await Transaction.begin(changing, verbs.changePosts(actorOf(2), changes))
    isOver = (await mutation.advance(statements)) !== undefined
    let isDeleted = false
    const deletion = Transaction.run(deleting, verbs.deleteUser(statements % 2 === 0 ? 4 : 1, anonymous))
    const end = deletion.finally(() => (isDeleted = true))
    await waitUntil(async () => isDeleted || (await isWaiting(deleting, watching)))
    if (!isOver) await outcomeOf(() => mutation.finish())
    await changing.query('commit')
    assert.equal(await end, 'gone')
  }
})

/** A connection that detects a deadlock at once. */
async function connected(parts: AsyncDisposableStack, location: string): Promise<pg.Client> {
  const client = parts.use(await connectTo(location))
  await client.query("set deadlock_timeout = '5ms'")
  return client
}
