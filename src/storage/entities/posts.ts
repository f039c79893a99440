import type { Reach } from '../../core/access.ts'
import type { Actor } from '../../core/actor.ts'
import { answerTooLarge } from '../../core/errors.ts'
import { badInput } from '../../core/input.ts'
import { answerText } from '../../core/selection.ts'
import type { Change, ChangeRefusal, ChangeResult, Show } from '../../core/store.ts'
import { bounds } from '../bounds.ts'
import { answerOf } from '../engine.ts'
import { queued, type Row, recordOf, type Statement, sql } from '../sql.ts'
import { timeOfUpdate, updatedAtOf } from '../updated-at.ts'
import { Rollback, type Steps } from '../verb.ts'
import { idOf, unlessRevoked } from './actors.ts'
import { addComment, deleteComment, updateComment } from './comments.ts'
import { eventAbout } from './outbox.ts'
import { lockContent, places } from './post-locks.ts'
import { contentPerStep, deleteSomeReplies } from './user-content.ts'

/** The selection to return after a change, compiled to the SQL statement that reads it. */
export interface CompiledShow extends Pick<Show, 'values' | 'id'> {
  readonly text: string
}

type Compiled<C> = C extends { readonly show: Show } ? Omit<C, 'show'> & { readonly show: CompiledShow } : C
export type CompiledChange = Compiled<Change>

export const postVerbs = {
  *changePosts(
    actor: Actor,
    changes: readonly CompiledChange[],
    traceparent: string | null = null,
  ): Steps<readonly ChangeResult[] | 'more' | ChangeRefusal | Rollback<ChangeRefusal>> {
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
): Steps<readonly ChangeResult[] | 'more' | ChangeRefusal | Rollback<ChangeRefusal>> {
  // A single change locks what it needs by itself.
  if (changes.length > 1) {
    yield* lockContent(postsNamedBy(changes), commentsNamedBy(changes))
    yield* checkDeletions(changes)
  }
  const results: ChangeResult[] = []
  let bytes = 0
  for (const [at, change] of changes.entries()) {
    const outcome = yield* perform(actor, change, traceparent)
    if (outcome === 'more') return outcome
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

/** Several changes share one transaction, so they cannot be made in steps. */
function* checkDeletions(changes: readonly CompiledChange[]): Steps<void> {
  const ids = distinct(changes.map(change => (change.kind === 'delete a post' ? change.id : null)))
  if (ids.length === 0) return
  const [row] = yield { text: `select sum(comment_count) from posts where id in (${places(ids)})`, values: ids }
  if (Number(row?.[0]) + changes.length > contentPerStep)
    throw badInput(`An operation with several changes deletes at most ${contentPerStep} comments`)
}

type Refused = Exclude<ChangeRefusal['refused'], 'token revoked'>

/** The text of an answer is JSON, which begins with none of these words. */
function isRefusal(outcome: ChangeResult | Refused): outcome is Refused {
  return typeof outcome === 'string' && /^(?:post|comment|not) /.test(outcome)
}

function* perform(actor: Actor, change: CompiledChange, traceparent: string | null): Steps<ChangeResult | Refused> {
  switch (change.kind) {
    case 'create a post':
      return textOf(yield shown(yield* createPost(actor, change.title, change.content, traceparent), change.show))
    case 'like a post': {
      // GraphQL's Int has 32 bits.
      const like = sql`update posts set likes = case when likes < 2147483647 then likes + 1 else likes end
                       where id = ${change.id} returning 1`
      const next = shown(change.id, change.show)
      const [post] = yield { ...like, next }
      return post === undefined ? 'post absent' : textOf(yield next)
    }
    case 'update a post': {
      const { id, title, content } = change
      const post = yield* lockPost(id, change.reach)
      if (post === undefined) return 'post absent'
      if (post === 'not permitted') return post
      const at = timeOfUpdate(post.updatedAt, post.now, change.ifUpdatedAt)
      if (at === undefined) return 'post changed'
      yield queued(sql`update posts set title = coalesce(${title}, title), content = coalesce(${content}, content),
                         updated_at = ${at} where id = ${id}`)
      yield eventAbout('post-updated', post.id, null, traceparent)
      return textOf(yield shown(id, change.show))
    }
    case 'delete a post': {
      const post = yield* lockPost(change.id, change.reach)
      if (post === undefined) return false
      if (post === 'not permitted') return post
      if (post.comments > contentPerStep) {
        yield* deleteSomeReplies(post.id)
        return 'more'
      }
      yield eventAbout('post-deleted', post.id, null, traceparent)
      yield queued(sql`delete from posts where id = ${post.id}`)
      return true
    }
    case 'add a comment': {
      const id = yield* addComment(change.postId, idOf(actor), change.text, traceparent)
      return id === undefined ? 'post absent' : textOf(yield shown(id, change.show))
    }
    case 'update a comment': {
      const id = yield* updateComment(change, traceparent)
      return typeof id === 'number' ? textOf(yield shown(id, change.show)) : id
    }
    case 'delete a comment':
      return yield* deleteComment(change.commentId, change.reach, traceparent)
  }
}

/** `undefined` if there is no such post. */
function* lockPost(id: number | null, reach: Reach): Steps<LockedPost | undefined | 'not permitted'> {
  const [row] = yield { text: lockById, values: [id] }
  if (row === undefined) return undefined
  const post = lockedPostOf(row)
  return reach === 'everyone' || reach === post.authorId ? post : 'not permitted'
}

interface LockedPost {
  readonly id: number
  readonly updatedAt: string
  readonly now: string
  readonly authorId: number
  readonly comments: number
}

const lockById = `select id, ${updatedAtOf('updated_at', 'published_at')}, now_plus(0), author_id, comment_count
                  from posts where id = $1 for update`
const lockedPostOf = recordOf<LockedPost>('id', 'updatedAt', 'now', 'authorId', 'comments')

function* createPost(actor: Actor, title: string, content: string, traceparent: string | null): Steps<number> {
  const [row] = yield sql`insert into posts (author_id, title, content, published_at)
                          select id, ${title}, ${content}, now_plus(0) from users where id = ${idOf(actor)}
                          returning id`
  const id = Number(row?.[0])
  yield eventAbout('post-added', id, null, traceparent)
  return id
}

const textOf = (rows: readonly Row[]) => answerText(answerOf(rows))

function shown(id: number | null, { text, values, id: slot }: CompiledShow): Statement {
  return { text, values: values.with(slot, id) }
}
