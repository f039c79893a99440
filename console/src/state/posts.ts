import { signal } from '@preact/signals'
import type { CommentData, NewComment, PostData } from './documents.ts'
import { commentEdit, isWrittenAbout } from './drafts.ts'
import { type Post, withComment, withoutComment, withRead } from './lists.ts'
import { announce } from './messages.ts'
import { who } from './session.ts'

/** What is known of posts, for the feed and for the page of a post. */
export const posts = signal<ReadonlyMap<string, Post>>(new Map())

/** Whether the feed was opened. From then on, events keep it up to date. */
export const feedIsOpen = signal(false)

/** The ids of the posts in the feed, newest first. Absent if not read yet. */
export const ids = signal<readonly string[] | undefined>(undefined)

/** The post that was asked for and does not exist. */
export const missing = signal<string | undefined>(undefined)

/** The posts whose comments are open in the feed, the latest one last. */
export const opened = signal<readonly string[]>([])

/** The post whose own page is shown. */
export const page = signal<string | undefined>(undefined)

export function isOpen(id: string): boolean {
  return page.peek() === id || opened.peek().includes(id)
}

/** Deleted posts and comments. Ids are never used again, and a late answer must not bring anything back. */
const deleted = new Set<string>()

/** What this user is deleting. Its event may come before the answer, and tells nothing new. */
const deleting = new Set<string>()

/** Runs a deletion by this user. */
export async function whileDeleting(what: `post ${string}` | `comment ${string}`, work: () => Promise<unknown>) {
  deleting.add(what)
  try {
    await work()
  } finally {
    deleting.delete(what)
  }
}

let events = 0

/** The number of the latest event. The answer to a request that was sent before an event may not contain it. */
export function latestEvent(): number {
  return events
}

/** Takes a post of an answer to a request that was sent after the event `asked`. Returns whether it exists. */
export function takePost(read: PostData, asked: number): boolean {
  if (deleted.has(`post ${read.id}`)) return false
  const known = posts.peek().get(read.id) ?? { ...read, arrived: false, seen: asked }
  const { likes, commentCount } = read
  const latest = { ...read, ...updates.get(read.id), likes, commentCount }
  put(withRead(withRead(known, read, asked), latest, asked))
  return true
}

/** Takes a post that was just written, here or elsewhere. Returns whether it is new. */
export function takeNewPost(read: PostData): boolean {
  if (deleted.has(`post ${read.id}`) || posts.peek().has(read.id)) return false
  put({ ...read, arrived: true, seen: ++events })
  if (!isOwn(read)) announce(`New post by ${read.author.name}: ${read.title}`)
  return true
}

/** Takes the new text of a post. */
export function takeUpdate({ postUpdated: read }: { readonly postUpdated: PostData }): void {
  events++
  if (!posts.peek().has(read.id)) keepUpdate(read)
  // Open comments are counted by their own events.
  const counted = (post: Post) => (post.comments === undefined ? events : 0)
  changePost(read.id, post => ({ ...withRead(post, read, counted(post)), seen: events }))
}

/** The latest updates of posts that are not known. An older text of one of them may be on its way. */
const updates = new Map<string, PostData>()
const mostUpdates = 20

function keepUpdate(read: PostData): void {
  updates.set(read.id, read)
  const [oldest = ''] = updates.keys()
  if (updates.size > mostUpdates) updates.delete(oldest)
}

/** The same comment arrives as an event and, if the user wrote it, in the answer, in any order. */
export function takeNewComment(postId: string, { post: { commentCount }, ...comment }: NewComment): void {
  if (deleted.has(`comment ${comment.id}`)) return
  const seen = ++events
  const isKnown = posts
    .peek()
    .get(postId)
    ?.comments?.some(({ id }) => id === comment.id)
  const added = { ...comment, arrived: true, seen }
  changePost(postId, post => withComment(isKnown ? post : { ...post, commentCount, seen }, added))
  if (!isOwn(comment) && !isKnown) announce(`New comment by ${comment.author.name}: ${comment.text}`)
}

export function takeChangedComment(postId: string, comment: CommentData): void {
  const seen = ++events
  const known = posts
    .peek()
    .get(postId)
    ?.comments?.find(({ id }) => id === comment.id)
  if (known !== undefined) changePost(postId, post => withComment(post, { ...known, ...comment, seen }))
}

/** The comment is deleted. If this user is editing it, its place stays and says so. */
export function dropComment(postId: string, id: string): void {
  if (deleting.has(`comment ${id}`)) return
  const seen = ++events
  deleted.add(`comment ${id}`)
  changePost(postId, post => withoutComment({ ...post, seen }, id, commentEdit(id).peek() !== undefined))
}

export function isComment({ id }: { readonly id: string }): boolean {
  return !deleted.has(`comment ${id}`)
}

/** The post is deleted. If somebody reads it or writes about it, its place stays and says so. */
export function dropPost(id: string): void {
  if (deleting.has(`post ${id}`)) return
  const post = posts.peek().get(id)
  if (post !== undefined && (isOpen(id) || isWrittenAbout(id))) {
    if (!post.gone) announce(`The post “${post.title}” is deleted`)
    put({ ...post, gone: true, comments: undefined })
  } else forgetPost(id)
}

/** Takes a deleted post away, with its place. */
export function forgetPost(id: string): void {
  deleted.add(`post ${id}`)
  releasePost(id)
  if (page.peek() === id) missing.value = id
}

/** Forgets a post that is no longer shown. */
export function releasePost(id: string): void {
  const left = new Map(posts.peek())
  left.delete(id)
  posts.value = left
}

export function changePost(id: string, change: (post: Post) => Post): void {
  const post = posts.peek().get(id)
  if (post !== undefined && !post.gone) put(change(post))
}

function put(post: Post): void {
  posts.value = new Map(posts.peek()).set(post.id, post)
}

function isOwn({ author }: Pick<PostData, 'author'>): boolean {
  return Number(author.id) === who.peek()?.id
}
