import { effect, signal } from '@preact/signals'
import type { Subscription } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { type CommentData, documents, type NewComment, type PostData } from './documents.ts'
import { byId, withNewest } from './lists.ts'
import { announce } from './messages.ts'
import { who } from './session.ts'

export interface FeedPost extends PostData {
  /** Whether it arrived while the page was open. */
  readonly arrived: boolean
  /** Absent if they were not read yet. */
  readonly comments?: readonly FeedComment[]
  readonly moreComments?: boolean
}

export interface FeedComment extends CommentData {
  readonly arrived: boolean
}

/** The number of items per request. */
const pageSizes = { posts: 10, comments: 50 }

/**
 * The number of posts with a subscription to their comments: open posts, and a few of the newest. Each subscription
 * counts for the rate limit.
 */
const mostWatched = 20
const newestWatched = 4

/** Newest first. Absent if not read yet. */
export const posts = signal<readonly FeedPost[] | undefined>(undefined)
export const morePosts = signal(false)

export async function readPosts(): Promise<void> {
  const read = await postsAfter(undefined)
  const known = new Map(posts.peek()?.map(post => [post.id, post]))
  const newest = read[0]
  // The answer does not contain posts that arrived after it was sent.
  const since = [...known.values()].filter(({ id, arrived }) => arrived && (!newest || Number(id) > Number(newest.id)))
  posts.value = [...since, ...read.map(post => ({ arrived: false, ...withComments(known.get(post.id)), ...post }))]
  for (const { id, comments } of posts.peek() ?? []) if (comments !== undefined) await readComments(id)
}

export async function readOlderPosts(): Promise<void> {
  const read = await postsAfter(posts.peek()?.at(-1)?.id)
  const known = new Set(posts.peek()?.map(({ id }) => id))
  const added = read.filter(({ id }) => !known.has(id)).map(post => ({ ...post, arrived: false }))
  posts.value = [...(posts.peek() ?? []), ...added]
}

async function postsAfter(after: string | undefined): Promise<readonly PostData[]> {
  const variables = { limit: pageSizes.posts, after }
  const { posts: read } = await api.graphql.query<{ posts: readonly PostData[] }>(documents.posts, variables)
  morePosts.value = read.length === pageSizes.posts
  return read
}

export async function createPost(title: string, content: string): Promise<void> {
  const { createPost: post } = await api.graphql.mutate<{ createPost: PostData }>(documents.createPost, {
    title,
    content,
  })
  addPost(post)
}

export async function updatePost(id: string, title: string, content: string): Promise<void> {
  const variables = { id, title, content }
  const { updatePost: post } = await api.graphql.mutate<{ updatePost: PostData }>(documents.updatePost, variables)
  changePost(id, () => post)
}

export async function likePost(id: string): Promise<void> {
  const { likePost: post } = await api.graphql.mutate<{ likePost: PostData }>(documents.likePost, { id })
  changePost(id, () => post)
}

export async function deletePost(id: string): Promise<void> {
  await api.graphql.mutate(documents.deletePost, { id })
  removePost(id)
}

export async function readComments(postId: string, older = false): Promise<void> {
  const known = older ? (postOf(postId)?.comments ?? []) : []
  // There may be more comments between the last page and those that arrived since.
  const after = known.findLast(({ arrived }) => !arrived)?.id
  const variables = { postId, limit: pageSizes.comments, after }
  const { post } = await api.graphql.query<{ post: { comments: readonly CommentData[] } | null }>(
    documents.comments,
    variables,
  )
  if (post === null) return removePost(postId)
  const read = post.comments.map(comment => ({ ...comment, arrived: false }))
  const comments = [...new Map([...known, ...read].map(comment => [comment.id, comment])).values()].sort(byId)
  changePost(postId, () => ({ comments, moreComments: read.length === pageSizes.comments }))
}

export function closeComments(postId: string): void {
  changePost(postId, () => ({ comments: undefined, moreComments: undefined }))
}

export async function addComment(postId: string, text: string): Promise<void> {
  const variables = { postId, text }
  const { addComment: comment } = await api.graphql.mutate<{ addComment: NewComment }>(documents.addComment, variables)
  takeComment(postId, comment)
}

export async function updateComment(postId: string, id: string, text: string): Promise<void> {
  const { updateComment: comment } = await api.graphql.mutate<{ updateComment: CommentData }>(documents.updateComment, {
    id,
    text,
  })
  changePost(postId, ({ comments }) => ({
    comments: comments?.map(each => (each.id === id ? { ...each, ...comment } : each)),
  }))
}

export async function deleteComment(postId: string, id: string): Promise<void> {
  await api.graphql.mutate(documents.deleteComment, { id })
  changePost(postId, ({ comments, commentCount }) => ({
    comments: comments?.filter(each => each.id !== id),
    commentCount: commentCount - 1,
  }))
}

/** Starts to receive new posts and comments, also after a lost connection. */
export function watchFeed(): void {
  watchPosts()
  effect(() => watchComments(posts.value ?? []))
}

function watchPosts(): void {
  // The subscription starts before the first page is read, so that no post is missed between them.
  api.live.subscribe<{ postAdded: PostData }>(documents.postAdded, undefined, {
    onData: ({ postAdded }) => addPost(postAdded),
    onReadAnew: () => void readPosts().catch(() => {}),
    onError: () => setTimeout(watchPosts, retryMs),
  })
}

const retryMs = 2000

const watched = new Map<string, Subscription>()

function watchComments(shown: readonly FeedPost[]): void {
  const open = shown.filter(({ comments }) => comments !== undefined)
  const newest = shown.slice(0, newestWatched)
  const wanted = new Set([...open, ...newest].slice(0, mostWatched).map(({ id }) => id))
  for (const [id, subscription] of watched) {
    if (wanted.has(id)) continue
    watched.delete(id)
    subscription.close()
  }
  for (const postId of wanted) {
    if (watched.has(postId)) continue
    const subscription = api.live.subscribe<{ commentAdded: NewComment }>(
      documents.commentAdded,
      { postId },
      {
        onData: ({ commentAdded }) => takeComment(postId, commentAdded),
        onReadAnew: () => {
          if (postOf(postId)?.comments !== undefined) readComments(postId).catch(() => {})
        },
        onError: () => watched.delete(postId),
        // A subscription to the comments of a post ends when the post is deleted.
        onEnd: () => removePost(postId),
      },
    )
    watched.set(postId, subscription)
  }
}

function postOf(id: string): FeedPost | undefined {
  return posts.peek()?.find(post => post.id === id)
}

function withComments(post: FeedPost | undefined): Partial<FeedPost> {
  return post?.comments === undefined ? {} : { comments: post.comments, moreComments: post.moreComments ?? false }
}

function addPost(post: PostData): void {
  const shown = posts.peek() ?? []
  if (shown.some(({ id }) => id === post.id)) return
  posts.value = withNewest(shown, { ...post, arrived: true })
  if (posts.value.length <= shown.length) morePosts.value = true
  if (Number(post.author.id) !== who.peek()?.id) announce(`New post by ${post.author.name}: ${post.title}`)
}

function removePost(id: string): void {
  posts.value = posts.peek()?.filter(post => post.id !== id)
}

type Changes = { readonly [Name in keyof FeedPost]?: FeedPost[Name] | undefined }

function changePost(id: string, change: (post: FeedPost) => Changes): void {
  posts.value = posts.peek()?.map(post => (post.id === id ? ({ ...post, ...change(post) } as FeedPost) : post))
}

/** The same comment arrives by the subscription and, if the user wrote it, in the answer, in any order. */
function takeComment(postId: string, { post, ...comment }: NewComment): void {
  changePost(postId, ({ comments }) => {
    const isKnown = comments === undefined || comments.some(({ id }) => id === comment.id)
    return {
      commentCount: post.commentCount,
      ...(!isKnown && { comments: [...comments, { ...comment, arrived: true }] }),
    }
  })
  if (Number(comment.author.id) !== who.peek()?.id) announce(`New comment by ${comment.author.name}: ${comment.text}`)
}
