import { execute, type GraphQLResolveInfo, parse } from 'graphql'
import type { Actor } from '../../../src/core/actor.ts'
import type { CommentRow, Data, PostRow } from './data.ts'
import { NaiveQuery, naiveSchema } from './naive.ts'
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

/** Represents any instant during the test. */
export const now = 'now'

/** The answer of a mutation and the rows afterwards, or the error if nothing was changed. */
export function naiveMutation(text: string, variables: Variables, actor: Actor, before: NaiveState): Outcome {
  const asked = new Recorder(before)
  executed(text, variables, asked)
  const unknown = asked.changes.find(({ name }) => actor.kind === 'anonymous' && name !== 'likePost')
  if (unknown !== undefined) return { code: 'UNAUTHENTICATED', path: [unknown.key] }
  const bad = asked.changes.find(({ args }) => !isGood(args))
  if (bad !== undefined) return { code: 'BAD_USER_INPUT', path: [bad.key] }
  const changes = new NaiveMutation(before, actor)
  const data = executed(text, variables, changes)
  return changes.failure ?? { data: JSON.stringify(data), state: changes.state }
}

function executed(text: string, variableValues: Variables, rootValue: object): unknown {
  const result = execute({ schema: naiveSchema, document: parse(text), rootValue, variableValues })
  if (result instanceof Promise || !('data' in result)) throw new Error('Nothing here takes its time')
  if (result.errors?.some(({ originalError }) => !(originalError instanceof Refused)))
    throw new Error(JSON.stringify(result.errors))
  return result.data
}

interface Args {
  readonly id?: string
  readonly postId?: string
  readonly title?: string
  readonly content?: string
  readonly text?: string
}

function isGood({ title = 'a', content = 'a', text = 'a' }: Args): boolean {
  const isSomething = [title, content, text].every(words => words.trim() !== '' && !words.includes('\0'))
  return isSomething && title.length <= 300 && content.length <= 65_536 && text.length <= 65_536
}

interface Asked {
  readonly name: string
  readonly key: string
  readonly args: Args
}

/** Changes nothing, and returns the requested fields. */
class Recorder {
  readonly changes: Asked[] = []
  readonly #query: NaiveQuery

  constructor(state: NaiveState) {
    this.#query = new NaiveQuery(() => state)
  }

  #note(args: Args, { fieldName: name, path: { key } }: GraphQLResolveInfo): void {
    this.changes.push({ name, key: String(key), args })
  }

  createPost = (args: Args, _: unknown, info: GraphQLResolveInfo) => {
    this.#note(args, info)
    return this.#query.shownPost(nothing)
  }
  likePost = this.createPost
  addComment = (args: Args, _: unknown, info: GraphQLResolveInfo) => {
    this.#note(args, info)
    return this.#query.shownComment(nothing)
  }
  deletePost = (args: Args, _: unknown, info: GraphQLResolveInfo) => {
    this.#note(args, info)
    return true
  }
}

const nothing = { id: 0, authorId: 1, postId: 0, title: '', content: '', text: '', likes: 0, publishedAt: null }

class Refused extends Error {}

class NaiveMutation {
  state: NaiveState
  failure: Failure | undefined
  readonly #actor: Actor
  readonly #query = new NaiveQuery(() => this.state)

  constructor(state: NaiveState, actor: Actor) {
    this.state = state
    this.#actor = actor
  }

  createPost = ({ title = '', content = '' }: Args) => {
    const id = this.state.nextPostId
    const post = { id, authorId: this.#actorId, title, content, likes: 0, publishedAt: now }
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
    const comment: CommentRow = { id, postId: post.id, authorId: this.#actorId, text }
    this.#change(
      { comments: [...this.state.comments, comment], nextCommentId: id + 1 },
      `comment-added ${post.id} ${id}`,
    )
    return this.#query.shownComment(comment)
  }

  deletePost = ({ id }: Args, _: unknown, info: GraphQLResolveInfo) => {
    const post = this.#postWith(id)
    if (post === undefined) return false
    const mayDelete = this.#actor.kind === 'user' && (this.#actor.role === 'admin' || this.#actor.id === post.authorId)
    if (!mayDelete) this.#refuse('FORBIDDEN', info)
    const posts = this.state.posts.filter(each => each !== post)
    const comments = this.state.comments.filter(({ postId }) => postId !== post.id)
    this.#change({ posts, comments }, `post-deleted ${post.id}`)
    return true
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
