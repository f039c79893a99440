import { execute, type GraphQLResolveInfo, parse } from 'graphql'
import type { Actor } from '../../../src/core/actor.ts'
import type { CommentRow, Data, PostRow } from './data.ts'
import { lastUpdateOf, mutationsBy, NaiveQuery, naiveSchema } from './naive.ts'
import type { Variables } from './operations.ts'

/** The rows of a naive store, and the ids of its next rows. */
export interface NaiveState extends Data {
  readonly nextPostId: number
  readonly nextCommentId: number
  /** The events for subscribers, in order. */
  readonly events: readonly string[]
}

export type Outcome = { readonly data: string; readonly state: NaiveState } | Failure

export interface Failure {
  readonly code: string
  readonly path: readonly unknown[]
}

/** Stands for any instant during the test. */
export const now = 'now'

/** The answer of a mutation and the rows afterwards, or the error if nothing was changed. */
export function naiveMutation(text: string, variables: Variables, actor: Actor, before: NaiveState): Outcome {
  const asked = changesIn(text, variables, before)
  const unknown = asked.find(({ name }) => actor.kind === 'anonymous' && name !== 'likePost')
  if (unknown !== undefined) return { code: 'UNAUTHENTICATED', path: [unknown.key] }
  const bad = asked.find(change => !isGood(change))
  if (bad !== undefined) return { code: 'BAD_USER_INPUT', path: [bad.key] }
  const changes = new NaiveMutation(before, actor)
  const missing = Object.keys(naiveSchema.getMutationType()?.getFields() ?? {}).find(name => !(name in changes))
  if (missing !== undefined) throw new Error(`test/graphql/support/naive-mutations.ts has no ${missing}`)
  const data = executed(text, variables, changes)
  return changes.failure ?? { data: JSON.stringify(data), state: changes.state }
}

function executed(text: string, variableValues: Variables, rootValue: object): unknown {
  const result = execute({ schema: naiveSchema, document: parse(text), rootValue, variableValues })
  if (result instanceof Promise || !('data' in result)) throw new Error('Execution must be synchronous')
  if (result.errors?.some(({ originalError }) => !(originalError instanceof Refused)))
    throw new Error(JSON.stringify(result.errors))
  return result.data
}

interface Args {
  readonly id?: string
  readonly postId?: string
  readonly title?: string | null
  readonly content?: string | null
  readonly text?: string
  /** In milliseconds. */
  readonly ifUpdatedAt?: number | null
}

function isGood({ name, args }: Asked): boolean {
  const [title, content, text] = [args.title ?? 'a', args.content ?? 'a', args.text ?? 'a']
  const isSomething = [title, content, text].every(words => words.trim() !== '' && !words.includes('\0'))
  if (name === 'updatePost' && (args.title ?? args.content ?? null) === null) return false
  return isSomething && title.length <= 300 && content.length <= 65_536 && text.length <= 65_536
}

interface Asked {
  readonly name: string
  readonly key: string
  readonly args: Args
}

/** The changes that an operation asks for, in order. It changes nothing. */
function changesIn(text: string, variables: Variables, state: NaiveState): readonly Asked[] {
  const changes: Asked[] = []
  const query = new NaiveQuery(() => state)
  const noting = (shown: () => unknown) => (args: Args, _: unknown, info: GraphQLResolveInfo) => {
    changes.push({ name: info.fieldName, key: String(info.path.key), args })
    return shown()
  }
  const all = mutationsBy({
    Post: noting(() => query.shownPost(nothing)),
    Comment: noting(() => ({ ...query.shownComment(nothing), post: () => query.shownPost(nothing) })),
    Boolean: noting(() => true),
  })
  executed(text, variables, all)
  return changes
}

const nothing = {
  ...{ id: 0, authorId: 1, postId: 1, title: '', content: '', text: '' },
  ...{ likes: 0, publishedAt: null, createdAt: now, updatedAt: null },
}

class Refused extends Error {}

function isState(row: PostRow | CommentRow, expected: number | null | undefined): boolean {
  return (expected ?? null) === null || Date.parse(lastUpdateOf(row)) === expected
}

/** Nothing is later than the last instant that can be written. */
function afterUpdate(row: PostRow | CommentRow): string {
  return lastUpdateOf(row).startsWith('9999') ? lastUpdateOf(row) : now
}

class NaiveMutation {
  state: NaiveState
  failure: Failure | undefined
  readonly #actor: Actor
  readonly #query = new NaiveQuery(() => this.state)

  constructor(state: NaiveState, actor: Actor) {
    this.state = state
    this.#actor = actor
  }

  createPost = ({ title, content }: Args) => {
    const id = this.state.nextPostId
    const texts = { title: title ?? '', content: content ?? '' }
    const post = { id, authorId: this.#actorId, ...texts, likes: 0, publishedAt: now, updatedAt: null }
    this.#change({ posts: [...this.state.posts, post], nextPostId: id + 1 }, `post-added ${id}`)
    return this.#query.shownPost(post)
  }

  likePost = ({ id }: Args, _: unknown, info: GraphQLResolveInfo) => {
    const post = this.#postWith(id) ?? this.#refuse('NOT_FOUND', info)
    const liked = { ...post, likes: Math.min(post.likes + 1, 2_147_483_647) }
    this.#change({ posts: this.state.posts.map(each => (each === post ? liked : each)) })
    return this.#query.shownPost(liked)
  }

  addComment = ({ postId, text = '' }: Args, _: unknown, info: GraphQLResolveInfo) => {
    const post = this.#postWith(postId) ?? this.#refuse('NOT_FOUND', info)
    const id = this.state.nextCommentId
    const comment: CommentRow = { id, postId: post.id, authorId: this.#actorId, text, createdAt: now, updatedAt: null }
    this.#change(
      { comments: [...this.state.comments, comment], nextCommentId: id + 1 },
      `comment-added ${post.id} ${id}`,
    )
    return this.#query.shownComment(comment)
  }

  updatePost = ({ id, title, content, ifUpdatedAt }: Args, _: unknown, info: GraphQLResolveInfo) => {
    const post = this.#postWith(id) ?? this.#refuse('NOT_FOUND', info)
    if (!this.#isOneOf(post.authorId)) this.#refuse('FORBIDDEN', info)
    if (!isState(post, ifUpdatedAt)) this.#refuse('CONFLICT', info)
    const texts = { title: title ?? post.title, content: content ?? post.content }
    const updated = { ...post, ...texts, updatedAt: afterUpdate(post) }
    this.#change({ posts: this.state.posts.map(each => (each === post ? updated : each)) }, `post-updated ${post.id}`)
    return this.#query.shownPost(updated)
  }

  deletePost = ({ id }: Args, _: unknown, info: GraphQLResolveInfo) => {
    const post = this.#postWith(id)
    if (post === undefined) return false
    if (!this.#isOneOf(post.authorId)) this.#refuse('FORBIDDEN', info)
    const posts = this.state.posts.filter(each => each !== post)
    const comments = this.state.comments.filter(({ postId }) => postId !== post.id)
    this.#change({ posts, comments }, `post-deleted ${post.id}`)
    return true
  }

  updateComment = ({ id, text = '', ifUpdatedAt }: Args, _: unknown, info: GraphQLResolveInfo) => {
    const comment = this.#commentWith(id) ?? this.#refuse('NOT_FOUND', info)
    if (!this.#isOneOf(comment.authorId)) this.#refuse('FORBIDDEN', info)
    if (!isState(comment, ifUpdatedAt)) this.#refuse('CONFLICT', info)
    const updated = { ...comment, text, updatedAt: afterUpdate(comment) }
    this.#change(
      { comments: this.state.comments.map(each => (each === comment ? updated : each)) },
      `comment-updated ${comment.postId} ${comment.id}`,
    )
    return this.#query.shownComment(updated)
  }

  deleteComment = ({ id }: Args, _: unknown, info: GraphQLResolveInfo) => {
    const comment = this.#commentWith(id)
    if (comment === undefined) return false
    const post = this.#postWith(String(comment.postId))
    if (!this.#isOneOf(comment.authorId, post?.authorId)) this.#refuse('FORBIDDEN', info)
    this.#change(
      { comments: this.state.comments.filter(each => each !== comment) },
      `comment-deleted ${comment.postId} ${comment.id}`,
    )
    return true
  }

  /** Whether the actor is an admin or one of these users. */
  #isOneOf(...ids: readonly (number | undefined)[]): boolean {
    return this.#actor.kind === 'user' && (this.#actor.role === 'admin' || ids.includes(this.#actor.id))
  }

  #commentWith(id: string | undefined): CommentRow | undefined {
    return this.state.comments.find(comment => String(comment.id) === id)
  }

  get #actorId(): number {
    return this.#actor.kind === 'user' ? this.#actor.id : 0
  }

  #postWith(id: string | undefined): PostRow | undefined {
    return this.state.posts.find(post => String(post.id) === id)
  }

  #change(changed: Partial<NaiveState>, ...events: string[]): void {
    this.state = { ...this.state, ...changed, events: [...this.state.events, ...events] }
  }

  #refuse(code: string, { path }: GraphQLResolveInfo): never {
    this.failure = { code, path: [path.key] }
    throw new Refused(code)
  }
}
