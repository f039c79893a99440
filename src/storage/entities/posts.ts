import type { Reach } from '../../core/access.ts'
import type { Actor } from '../../core/actor.ts'
import { answerTooLarge } from '../../core/errors.ts'
import type { Change, ChangeRefusal, ChangeResult, Show } from '../../core/store.ts'
import { bounds } from '../bounds.ts'
import { answerOf } from '../engine.ts'
import { queued, type Statement, sql } from '../sql.ts'
import { Rollback, type Steps } from '../verb.ts'
import { idOf, unlessRevoked } from './actors.ts'
import { addComment, deleteComment, updateComment } from './comments.ts'
import { lockContent } from './post-locks.ts'

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
    traceparent: string | null = null,
  ): Steps<readonly ChangeResult[] | ChangeRefusal | Rollback<ChangeRefusal>> {
    // A new row refers to its author, which locks the author. Users are locked before posts.
    const isInserting = changes.some(({ kind }) => kind === 'create a post' || kind === 'add a comment')
    const revoked: ChangeRefusal = { refused: 'token revoked', at: 0 }
    return yield* unlessRevoked(actor, performAll(actor, changes, traceparent), revoked, isInserting)
  },
}

export function postsNamedBy(changes: readonly CompiledChange[]): readonly number[] {
  return distinct(changes.map(change => ('postId' in change ? change.postId : 'id' in change ? change.id : null)))
}

function commentsNamedBy(changes: readonly CompiledChange[]): readonly number[] {
  return distinct(changes.map(change => ('commentId' in change ? change.commentId : null)))
}

function distinct(ids: readonly (number | null)[]): readonly number[] {
  return [...new Set(ids.filter(id => id !== null))]
}

function* performAll(
  actor: Actor,
  changes: readonly CompiledChange[],
  traceparent: string | null,
): Steps<readonly ChangeResult[] | ChangeRefusal | Rollback<ChangeRefusal>> {
  // A single change locks what it needs by itself.
  if (changes.length > 1) yield* lockContent(postsNamedBy(changes), commentsNamedBy(changes))
  const results: ChangeResult[] = []
  let bytes = 0
  for (const [at, change] of changes.entries()) {
    const outcome = yield* perform(actor, change, traceparent)
    if (isRefusal(outcome)) {
      // If the first change is refused, there is nothing to roll back, which would take time.
      return at === 0 ? { refused: outcome, at } : new Rollback({ refused: outcome, at })
    }
    if (typeof outcome === 'string') bytes += Buffer.byteLength(outcome)
    if (bytes > bounds.answerBytes) throw answerTooLarge()
    results.push(outcome)
  }
  return results
}

type Refused = Exclude<ChangeRefusal['refused'], 'token revoked'>

/** The text of an answer is JSON, and so none of these. */
function isRefusal(outcome: ChangeResult | Refused): outcome is Refused {
  return outcome === 'post absent' || outcome === 'comment absent' || outcome === 'not permitted'
}

function* perform(actor: Actor, change: CompiledChange, traceparent: string | null): Steps<ChangeResult | Refused> {
  switch (change.kind) {
    case 'create a post':
      return answerOf(yield shown(yield* createPost(actor, change.title, change.content, traceparent), change.show))
    case 'like a post': {
      // GraphQL's Int has 32 bits.
      const like = sql`update posts set likes = case when likes < 2147483647 then likes + 1 else likes end
                       where id = ${change.id} returning id`
      const next = shown(change.id, change.show)
      const [post] = yield { ...like, next }
      return post === undefined ? 'post absent' : answerOf(yield next)
    }
    case 'update a post': {
      const { id, title, content } = change
      const post = yield* lockPost(id, change.reach)
      if (post === undefined) return 'post absent'
      if (post === 'not permitted') return post
      yield queued(sql`update posts set title = coalesce(${title}, title), content = coalesce(${content}, content)
                       where id = ${id}`)
      return answerOf(yield shown(post, change.show))
    }
    case 'delete a post': {
      const post = yield* lockPost(change.id, change.reach)
      if (post === undefined) return false
      if (post === 'not permitted') return post
      yield queued(sql`insert into outbox (kind, post_id, created_at) values ('post-deleted', ${post}, now_plus(0))`)
      yield queued(sql`delete from posts where id = ${post}`)
      return true
    }
    case 'add a comment': {
      const id = yield* addComment(change.postId, idOf(actor), change.text, traceparent)
      return id === undefined ? 'post absent' : answerOf(yield shown(id, change.show))
    }
    case 'update a comment': {
      const id = yield* updateComment(change.commentId, change.text, change.reach)
      return typeof id === 'number' ? answerOf(yield shown(id, change.show)) : id
    }
    case 'delete a comment':
      return yield* deleteComment(change.commentId, change.reach)
  }
}

/** The id of the post, or `undefined` if there is none. */
function* lockPost(id: number | null, reach: Reach): Steps<number | undefined | 'not permitted'> {
  const [post] = yield sql`select id, author_id from posts where id = ${id} for update`
  if (post === undefined) return undefined
  return reach === 'everyone' || reach === post[1] ? Number(post[0]) : 'not permitted'
}

function* createPost(actor: Actor, title: string, content: string, traceparent: string | null): Steps<number> {
  const [row] = yield sql`insert into posts (author_id, title, content, published_at)
                          select id, ${title}, ${content}, now_plus(0) from users where id = ${idOf(actor)}
                          returning id`
  const id = Number(row?.[0])
  yield queued(sql`insert into outbox (kind, post_id, created_at, traceparent)
                   values ('post-added', ${id}, now_plus(0), ${traceparent})`)
  return id
}

function shown(id: number | null, { text, values, id: slot }: CompiledShow): Statement {
  return { text, values: values.with(slot, id) }
}
