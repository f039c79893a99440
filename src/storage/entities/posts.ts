import type { Actor } from '../../core/actor.ts'
import { answerTooLarge } from '../../core/errors.ts'
import type { Change, ChangeRefusal, ChangeResult, Show } from '../../core/store.ts'
import { answerOf, bounds } from '../engine.ts'
import { type Statement, sql } from '../sql.ts'
import { Rollback, type Steps, type TraitsOf } from '../verb.ts'
import { callerOf, isRevoked } from './actors.ts'

/** The selection to return after a change, compiled to the SQL statement that reads it. */
export interface CompiledShow extends Pick<Show, 'values' | 'id'> {
  readonly text: string
}

type Compiled<C> = C extends { readonly show: Show } ? Omit<C, 'show'> & { readonly show: CompiledShow } : C
export type CompiledChange = Compiled<Change>

export const postReads = {
  byId: (id: number) => sql`select id from posts where id = ${id}`,
}

export const postVerbs = {
  *changePosts(
    actor: Actor,
    changes: readonly CompiledChange[],
  ): Steps<readonly ChangeResult[] | ChangeRefusal | Rollback<ChangeRefusal>> {
    if (yield* isRevoked(actor)) return { refused: 'token revoked', at: 0 }
    const named = postsNamedBy(changes)
    if (named.length > 1) yield lockPosts(named)
    const results: ChangeResult[] = []
    let bytes = 0
    for (const [at, change] of changes.entries()) {
      const outcome = yield* perform(actor, change)
      if (typeof outcome === 'string') bytes += Buffer.byteLength(outcome)
      if (bytes > bounds.answerBytes) throw answerTooLarge()
      if (outcome !== 'post absent' && outcome !== 'not permitted') results.push(outcome)
      // If the first change is refused, there is nothing to roll back, which would take time.
      else return at === 0 ? { refused: outcome, at } : new Rollback({ refused: outcome, at })
    }
    return results
  },
}

export const postTraits: TraitsOf<typeof postVerbs> = {
  changePosts: {
    caller: callerOf,
    locks: (_actor, changes) => postsNamedBy(changes).map(id => `post ${id}`),
    events: (_actor, changes) => changes.some(({ kind }) => kind !== 'like post'),
  },
}

/** Ids of the posts that the changes refer to, in ascending order and without duplicates. */
function postsNamedBy(changes: readonly CompiledChange[]): readonly number[] {
  const ids = changes.map(change => ('postId' in change ? change.postId : 'id' in change ? change.id : null))
  return [...new Set(ids.filter(id => id !== null))].sort((one, other) => one - other)
}

/** Transactions that lock the same posts in one order cannot wait for each other. */
function lockPosts(ids: readonly number[]): Statement {
  const places = ids.map((_, index) => `$${index + 1}`).join(', ')
  return { text: `select id from posts where id in (${places}) order by id for update`, values: ids }
}

function* perform(actor: Actor, change: CompiledChange): Steps<ChangeResult | ChangeRefusal['refused']> {
  switch (change.kind) {
    case 'create post':
      return yield* show(yield* createPost(actor, change.title, change.content), change.show)
    case 'add comment': {
      const id = yield* addComment(actor, change.postId, change.text)
      return id === undefined ? 'post absent' : yield* show(id, change.show)
    }
    case 'like post': {
      // GraphQL's Int has 32 bits.
      const [post] = yield sql`update posts set likes = case when likes < 2147483647 then likes + 1 else likes end
                               where id = ${change.id} returning id`
      return post === undefined ? 'post absent' : yield* show(Number(post[0]), change.show)
    }
    case 'delete post': {
      const [post] = yield sql`select author_id from posts where id = ${change.id} for update`
      if (post === undefined) return false
      if (change.reach !== 'everyone' && change.reach !== post[0]) return 'not permitted'
      yield sql`insert into outbox (kind, post_id, created_at) values ('post-deleted', ${change.id}, now_plus(0))`
      yield sql`delete from posts where id = ${change.id}`
      return true
    }
  }
}

function* createPost(actor: Actor, title: string, content: string): Steps<number> {
  const [row] = yield sql`insert into posts (author_id, title, content, published_at)
                          values (${idOf(actor)}, ${title}, ${content}, now_plus(0)) returning id`
  const id = Number(row?.[0])
  yield sql`insert into outbox (kind, post_id, created_at) values ('post-added', ${id}, now_plus(0))`
  return id
}

function* addComment(actor: Actor, postId: number | null, text: string): Steps<number | undefined> {
  const [post] = yield sql`select id from posts where id = ${postId}`
  if (post === undefined) return undefined
  const [row] = yield sql`insert into comments (post_id, author_id, text, created_at)
                          values (${postId}, ${idOf(actor)}, ${text}, now_plus(0)) returning id`
  const id = Number(row?.[0])
  yield sql`insert into outbox (kind, post_id, comment_id, created_at)
            values ('comment-added', ${postId}, ${id}, now_plus(0))`
  return id
}

function* show(id: number, { text, values, id: slot }: CompiledShow): Steps<string> {
  return answerOf(yield { text, values: values.with(slot, id) })
}

function idOf(actor: Actor): number | null {
  return actor.kind === 'user' ? actor.id : null
}
